import 'reflect-metadata';
import { Controller, Module, type INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, Payload } from '@nestjs/microservices';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { JOB_PATTERN, JobServer, KeepErrors, type JobMessage } from '#broker';
import { waitUntil } from '#testing';
import { BrokerWorld, SteppedHandler } from '../faults/broker-world.ts';

const handler = new SteppedHandler();
let failures: Error[] = [];

@Controller()
class Jobs {
  @EventPattern<string>(JOB_PATTERN)
  async run(@Payload() message: JobMessage): Promise<void> {
    const failure = failures.pop();
    if (failure !== undefined) throw failure;
    await handler.handle(message);
  }
}

@Module({ controllers: [Jobs] })
class JobsModule {}

let world: BrokerWorld;
let app: INestMicroservice;

beforeEach(async () => {
  world = await BrokerWorld.make();
  const { url, topology, logger } = world;
  const strategy = new JobServer({ url, topology, logger, pauses: { firstMs: 1, mostMs: 1 } });
  app = await NestFactory.createMicroservice(JobsModule, { strategy, logger: false });
  app.useGlobalFilters(new KeepErrors());
  await app.listen();
  await waitUntil('ready', () => strategy.report.status === 'ready');
});

afterEach(async () => {
  handler.release();
  await app.close();
  await world.close();
});

test('a Nest handler gets the job, its own error reaches the transport, and its end is waited for', async () => {
  failures = [new TypeError('the real reason')];
  const [jobId] = await world.publishJobs(1);
  await handler.hasBegun(1);
  expect(handler.began).toEqual([jobId]);
  const failed = world.log.find((line) => line.message === 'job handler failed, delivery goes back');
  expect(failed?.fields['error']).toEqual(new TypeError('the real reason'));

  const closed = app.close();
  expect(handler.ended).toEqual([]);
  handler.release();
  await closed;
  expect(handler.ended).toEqual([jobId]);
  expect(await world.messages()).toBe(0);
});

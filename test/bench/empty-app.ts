/**
 * The least that the gateway's framework can answer: one route that does nothing, on Nest with Fastify. Started as a process
 * of its own, like the gateway; tells its port on standard output, and ends with its standard input.
 *
 * Node runs this file by leaving its types out, so the decorators are called as the functions they are.
 */
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { FastifyAdapter } from '@nestjs/platform-fastify';

class EmptyController {
  empty(): object {
    return {};
  }
}
Controller()(EmptyController);
const method = Object.getOwnPropertyDescriptor(EmptyController.prototype, 'empty');
if (method === undefined) throw new TypeError('a class has its methods');
Get('empty')(EmptyController.prototype, 'empty', method);

// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest, decorated below
class EmptyModule {}
Module({ controllers: [EmptyController] })(EmptyModule);

const app = await NestFactory.create<NestFastifyApplication>(EmptyModule, new FastifyAdapter(), { logger: false });
await app.listen(0, '127.0.0.1');
console.log(new URL(await app.getUrl()).port);
process.stdin.resume().on('end', () => process.exit(0));

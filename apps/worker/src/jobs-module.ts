import { Controller, Inject, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import type { JobMessage } from '#broker';
import { JOB_PATTERN } from '#broker';
import { Jobs } from './jobs.ts';

/** The door for job messages; what comes in by it is only an id. */
@Controller()
class JobsController {
  constructor(@Inject(Jobs) private readonly jobs: Jobs) {}

  /** The delivery is acknowledged when this has returned. */
  @EventPattern<string>(JOB_PATTERN)
  handle(@Payload() message: JobMessage): Promise<void> {
    return this.jobs.run(message.jobId);
  }
}

@Module({})
class JobsModule {}

export function jobsModule(jobs: Jobs): DynamicModule {
  return { module: JobsModule, controllers: [JobsController], providers: [{ provide: Jobs, useValue: jobs }] };
}

import { Body, Controller, Delete, Get, HttpStatus, Inject, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Caller, Needs } from '../access/needs.ts';
import type { Principal } from '../access/principal.ts';
import { checked } from '../http/checked.ts';
import { assertNoBody } from '../http/json-body.ts';
import type { Page } from '../http/page.ts';
import { Answers, BODY_PROBLEMS } from '../openapi/answers.ts';
import {
  RegistryPageSchema,
  RegistrySchema,
  type RegistryToSet,
  RegistryToSetSchema,
  type RegistryView,
} from '../schemas/registry.ts';
import { REGISTRIES } from '../tokens.ts';
import type { Registries } from './registries.ts';

@ApiTags('admin')
@Needs('admin')
@Controller('v1/admin/registries')
export class RegistriesController {
  readonly #registries: Registries;

  constructor(@Inject(REGISTRIES) registries: Registries) {
    this.#registries = registries;
  }

  @Get()
  @Answers(200, 'Registries with credentials, by name', RegistryPageSchema)
  listRegistries(): Promise<Page<RegistryView>> {
    return this.#registries.list();
  }

  @Post()
  @Answers(200, 'The registry: its credentials are replaced', RegistrySchema, BODY_PROBLEMS)
  @Answers(201, 'The registry', RegistrySchema)
  async setRegistry(
    @Caller() caller: Principal,
    @Body(checked(RegistryToSetSchema)) body: RegistryToSet,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RegistryView> {
    const { view, made } = await this.#registries.set(caller, body);
    void reply
      .code(made ? HttpStatus.CREATED : HttpStatus.OK)
      .header('location', `/v1/admin/registries/${encodeURIComponent(view.server)}`);
    return view;
  }

  @Delete(':server')
  @Answers(200, 'The registry that was known', RegistrySchema, [...BODY_PROBLEMS, 'not_found'])
  removeRegistry(
    @Caller() caller: Principal,
    @Param('server') server: string,
    @Body() body: unknown,
  ): Promise<RegistryView> {
    assertNoBody(body);
    return this.#registries.remove(caller, server);
  }
}

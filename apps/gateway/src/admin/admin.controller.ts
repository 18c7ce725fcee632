import { Controller, Get, Inject, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Needs } from '../access/needs.ts';
import { checked } from '../http/checked.ts';
import type { Page } from '../http/page.ts';
import { Answers } from '../openapi/answers.ts';
import {
  CasePageSchema,
  type CaseQuery,
  CaseQuerySchema,
  CaseSchema,
  type CaseView,
  EnginePageSchema,
  EngineSchema,
  type EngineView,
} from '../schemas/admin.ts';
import { ADMIN } from '../tokens.ts';
import type { Admin } from './admin.ts';

@ApiTags('admin')
@Needs('operator')
@Controller('v1/admin')
export class AdminController {
  readonly #admin: Admin;

  constructor(@Inject(ADMIN) admin: Admin) {
    this.#admin = admin;
  }

  @Get('engines')
  @Answers(200, 'All engines, oldest first', EnginePageSchema)
  listEngines(): Promise<Page<EngineView>> {
    return this.#admin.engines();
  }

  @Get('engines/:id')
  @Answers(200, 'The engine', EngineSchema, ['not_found'])
  getEngine(@Param('id') id: string): Promise<EngineView> {
    return this.#admin.engine(id);
  }

  @Get('cases')
  @Answers(200, 'Cases, newest first', CasePageSchema, ['invalid_request'])
  listCases(@Query(checked(CaseQuerySchema)) query: CaseQuery): Promise<Page<CaseView>> {
    return this.#admin.cases(query);
  }

  @Get('cases/:id')
  @Answers(200, 'The case', CaseSchema, ['not_found'])
  getCase(@Param('id') id: string): Promise<CaseView> {
    return this.#admin.case(id);
  }
}

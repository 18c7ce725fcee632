import { Body, Controller, Get, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Caller, Needs } from '../access/needs.ts';
import type { Principal } from '../access/principal.ts';
import { checked } from '../http/checked.ts';
import { idempotencyOf } from '../http/idempotency-key.ts';
import type { Page } from '../http/page.ts';
import { Answers, BODY_PROBLEMS, TakesIdempotencyKey } from '../openapi/answers.ts';
import {
  type PageQuery,
  PageQuerySchema,
  ProjectPageSchema,
  ProjectSchema,
  type ProjectToCreate,
  ProjectToCreateSchema,
  type ProjectView,
} from '../schemas/project.ts';
import { PROJECTS } from '../tokens.ts';
import { type Projects, toProjectView } from './projects.ts';

@ApiTags('projects')
@Controller('v1/projects')
export class ProjectsController {
  readonly #projects: Projects;

  constructor(@Inject(PROJECTS) projects: Projects) {
    this.#projects = projects;
  }

  @Get()
  @Needs('viewer')
  @Answers(200, 'Projects that the key may see, by name', ProjectPageSchema, ['invalid_request'])
  listProjects(
    @Caller() caller: Principal,
    @Query(checked(PageQuerySchema)) query: PageQuery,
  ): Promise<Page<ProjectView>> {
    return this.#projects.list(caller, query);
  }

  @Post()
  @Needs('admin')
  @TakesIdempotencyKey()
  @Answers(201, 'The project', ProjectSchema, [...BODY_PROBLEMS, 'project_exists', 'idempotency_mismatch'])
  async createProject(
    @Caller() caller: Principal,
    @Body(checked(ProjectToCreateSchema)) body: ProjectToCreate,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ProjectView> {
    const project = await this.#projects.create(caller, body.name, idempotencyOf(request, caller));
    void reply.header('location', `/v1/projects/${project.name}`);
    return project;
  }

  @Get(':project')
  @Needs('viewer')
  @Answers(200, 'The project', ProjectSchema, ['not_found'])
  async getProject(@Caller() caller: Principal, @Param('project') project: string): Promise<ProjectView> {
    return toProjectView(await this.#projects.find(caller, project));
  }
}

import type { JsonObject, Reason } from '#kernel';
import type { OperationKind, OperationState } from '#protocol';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { ApiKeyEntity } from './api-key.ts';
import { EngineEntity } from './engine.ts';
import { EnvironmentEntity } from './environment.ts';
import { HostEntity } from './host.ts';
import { ProjectEntity } from './project.ts';

const UNFINISHED = `state in ('queued', 'running', 'blocked')`;

@Entity('operations')
@Check('operations_state_check', `state in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'blocked')`)
@Index('operations_one_change', ['environmentId'], {
  unique: true,
  where: `kind <> 'environment.delete' and ${UNFINISHED}`,
})
@Index('operations_one_delete', ['environmentId'], {
  unique: true,
  where: `kind = 'environment.delete' and ${UNFINISHED}`,
})
@Index('operations_open', ['hostId', 'createdAt'], { where: UNFINISHED })
@Index('operations_by_environment', ['environmentId', 'createdAt', 'id'])
@Index('operations_list', ['createdAt', 'id'])
@Index('operations_engine_starts', ['engineId', 'createdAt'], { where: `kind = 'engine.start'` })
export class OperationEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'operations_pkey' })
  id!: string;

  @Column({ type: 'text' })
  kind!: OperationKind;

  @ForeignKey(() => HostEntity, { name: 'operations_host_id_fkey' })
  @Column({ name: 'host_id', type: 'text' })
  hostId!: string;

  @ForeignKey(() => ProjectEntity, { name: 'operations_project_id_fkey' })
  @Column({ name: 'project_id', type: 'uuid', nullable: true })
  projectId!: string | null;

  @ForeignKey(() => EnvironmentEntity, { name: 'operations_environment_id_fkey' })
  @Column({ name: 'environment_id', type: 'uuid', nullable: true })
  environmentId!: string | null;

  @ForeignKey(() => EngineEntity, { name: 'operations_engine_id_fkey' })
  @Column({ name: 'engine_id', type: 'uuid' })
  engineId!: string;

  @ForeignKey(() => ApiKeyEntity, { name: 'operations_requested_by_fkey' })
  @Column({ name: 'requested_by', type: 'uuid', nullable: true, comment: 'null: the system itself' })
  requestedBy!: string | null;

  @Column({ type: 'jsonb', default: {} })
  request!: JsonObject;

  @Column({ type: 'text' })
  state!: OperationState;

  @Column({ type: 'text', default: 'queued' })
  stage!: string;

  @Column({ type: 'integer', default: 0 })
  attempt!: number;

  @Column({ name: 'claim_id', type: 'uuid', nullable: true })
  claimId!: string | null;

  @Column({ name: 'cancel_requested', type: 'boolean', default: false })
  cancelRequested!: boolean;

  @Column({ type: 'boolean', default: false, comment: 'a delete waits for it: what was made is left to the delete' })
  superseded!: boolean;

  @Column({ type: 'jsonb', nullable: true })
  abandon!: Reason | null;

  @Column({ name: 'preflight_interruptions', type: 'integer', default: 0 })
  preflightInterruptions!: number;

  @Column({ name: 'stalled_resumes', type: 'integer', default: 0 })
  stalledResumes!: number;

  @Column({ name: 'effects_at_resume', type: 'integer', default: 0 })
  effectsAtResume!: number;

  @Column({ type: 'jsonb', nullable: true })
  reason!: Reason | null;

  @Column({ name: 'waiting_for', type: 'text', nullable: true })
  waitingFor!: string | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ name: 'started_at', type: 'timestamptz', nullable: true })
  startedAt!: Date | null;

  @Column({ name: 'finished_at', type: 'timestamptz', nullable: true })
  finishedAt!: Date | null;

  @Column({ type: 'text', nullable: true, comment: 'how far the effect in hand is, for people' })
  progress!: string | null;
}

@Entity('jobs')
@Unique('jobs_operation_id_key', ['operationId'])
export class JobEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'jobs_pkey' })
  id!: string;

  @ForeignKey(() => OperationEntity, { name: 'jobs_operation_id_fkey' })
  @Column({ name: 'operation_id', type: 'uuid' })
  operationId!: string;

  @ForeignKey(() => HostEntity, { name: 'jobs_host_id_fkey' })
  @Column({ name: 'host_id', type: 'text' })
  hostId!: string;

  @Column({ name: 'schema_version', type: 'integer' })
  schemaVersion!: number;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

@Entity('claims')
@Unique('claims_operation_id_attempt_key', ['operationId', 'attempt'])
@Unique('claims_host_id_claim_number_key', ['hostId', 'claimNumber'])
@Index('claims_one_live', ['hostId'], { unique: true, where: 'ended_at is null' })
export class ClaimEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'claims_pkey' })
  id!: string;

  @ForeignKey(() => JobEntity, { name: 'claims_job_id_fkey' })
  @Column({ name: 'job_id', type: 'uuid' })
  jobId!: string;

  @ForeignKey(() => OperationEntity, { name: 'claims_operation_id_fkey' })
  @Column({ name: 'operation_id', type: 'uuid' })
  operationId!: string;

  @ForeignKey(() => HostEntity, { name: 'claims_host_id_fkey' })
  @Column({ name: 'host_id', type: 'text' })
  hostId!: string;

  @Column({ type: 'integer' })
  attempt!: number;

  @Column({ name: 'claim_number', type: 'bigint' })
  claimNumber!: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;

  @Column({ name: 'end_reason', type: 'text', nullable: true })
  endReason!: string | null;
}

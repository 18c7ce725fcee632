import type { Reason, Tier } from '#kernel';
import type { EnvironmentState, Identities, ServiceSpec } from '#protocol';
import type { ServiceObservation } from '../rows.ts';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { EngineEntity } from './engine.ts';
import { ProjectEntity } from './project.ts';

@Entity('environments')
@Index('environments_name', ['projectId', 'name'], { unique: true, where: `state not in ('deleted', 'failed')` })
@Index('environments_database', ['engineId', 'databaseName'], { unique: true })
@Index('environments_list', ['projectId', 'createdAt', 'id'])
@Check(
  'environments_state_check',
  `state in ('provisioning', 'ready', 'degraded', 'updating', 'suspended', 'deleting', 'deleted', 'failed', 'blocked')`,
)
@Check('environments_connection_limit_check', 'connection_limit > 0')
@Check('environments_networks_check', 'networks between 0 and 2')
@Index('environments_networks', ['engineId'], { where: `networks > 0 and state not in ('deleted', 'failed')` })
export class EnvironmentEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'environments_pkey' })
  id!: string;

  @ForeignKey(() => ProjectEntity, { name: 'environments_project_id_fkey' })
  @Column({ name: 'project_id', type: 'uuid' })
  projectId!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text' })
  state!: EnvironmentState;

  @ForeignKey(() => EngineEntity, { name: 'environments_engine_id_fkey' })
  @Column({ name: 'engine_id', type: 'uuid' })
  engineId!: string;

  @Column({ type: 'text' })
  profile!: string;

  @Column({ type: 'text', array: true })
  extensions!: string[];

  @Column({ name: 'connection_limit', type: 'integer' })
  connectionLimit!: number;

  @Column({ type: 'jsonb' })
  labels!: Record<string, string>;

  @Column({ name: 'database_name', type: 'text' })
  databaseName!: string;

  @Column({ type: 'jsonb', default: {} })
  identities!: Identities;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ name: 'last_observed_at', type: 'timestamptz', nullable: true })
  lastObservedAt!: Date | null;

  @Column({
    type: 'integer',
    default: 0,
    comment: 'how many its services need: none, its own, and one for published ports',
  })
  networks!: number;

  @Column({ type: 'jsonb', nullable: true, comment: 'why it is degraded' })
  reason!: Reason | null;
}

@Entity('logins')
@Check('logins_tier_check', `tier in ('migrate', 'app', 'readonly')`)
export class LoginEntity {
  @ForeignKey(() => EnvironmentEntity, { name: 'logins_environment_id_fkey' })
  @PrimaryColumn({ name: 'environment_id', type: 'uuid', primaryKeyConstraintName: 'logins_pkey' })
  environmentId!: string;

  @PrimaryColumn({ type: 'text', primaryKeyConstraintName: 'logins_pkey' })
  tier!: Tier;

  @Column({ name: 'user_name', type: 'text' })
  userName!: string;

  // Not selected unless a statement names it: a join that forgets a column list shows no secret (FIELD-CASES B112).
  @Column({
    name: 'password_sealed',
    type: 'bytea',
    nullable: true,
    select: false,
    comment: 'AES-256-GCM under the key file; removed with the environment',
  })
  passwordSealed!: Buffer | null;

  @Column({ name: 'verifier_sealed', type: 'bytea', nullable: true, select: false })
  verifierSealed!: Buffer | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

@Entity('services')
@Unique('services_environment_id_name_key', ['environmentId', 'name'])
export class ServiceEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'services_pkey' })
  id!: string;

  @ForeignKey(() => EnvironmentEntity, { name: 'services_environment_id_fkey' })
  @Column({ name: 'environment_id', type: 'uuid' })
  environmentId!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text' })
  image!: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ type: 'integer', default: 0 })
  ordinal!: number;

  @Column({ type: 'jsonb', default: {}, comment: 'command, env, ports, health, limits, readOnly: no secret' })
  spec!: ServiceSpec;

  @Column({ type: 'jsonb', nullable: true, comment: 'what the watcher saw of its container when it last changed' })
  observed!: ServiceObservation | null;

  @Column({ name: 'observed_at', type: 'timestamptz', nullable: true })
  observedAt!: Date | null;
}

@Entity('service_secrets')
export class ServiceSecretEntity {
  @ForeignKey(() => ServiceEntity, { name: 'service_secrets_service_id_fkey' })
  @PrimaryColumn({ name: 'service_id', type: 'uuid', primaryKeyConstraintName: 'service_secrets_pkey' })
  serviceId!: string;

  @PrimaryColumn({ type: 'text', primaryKeyConstraintName: 'service_secrets_pkey' })
  name!: string;

  @Column({ type: 'bytea', select: false, comment: 'AES-256-GCM under the key file; removed with the environment' })
  sealed!: Buffer;
}

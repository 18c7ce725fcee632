import type { JsonObject, Reason } from '#kernel';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { EffectEntity } from './effect.ts';
import { EngineEntity } from './engine.ts';
import { EnvironmentEntity } from './environment.ts';
import { HostEntity } from './host.ts';
import { OperationEntity } from './operation.ts';

@Entity('cases')
@Index('cases_open_effect', ['effectId'], { unique: true, where: 'closed_at is null' })
// Its columns are an expression, which a decorator cannot say.
@Index('cases_open_place', { synchronize: false })
export class CaseEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'cases_pkey' })
  id!: string;

  @Column({ type: 'text' })
  kind!: string;

  @ForeignKey(() => HostEntity, { name: 'cases_host_id_fkey' })
  @Column({ name: 'host_id', type: 'text' })
  hostId!: string;

  @ForeignKey(() => EngineEntity, { name: 'cases_engine_id_fkey' })
  @Column({ name: 'engine_id', type: 'uuid', nullable: true })
  engineId!: string | null;

  @ForeignKey(() => EnvironmentEntity, { name: 'cases_environment_id_fkey' })
  @Column({ name: 'environment_id', type: 'uuid', nullable: true })
  environmentId!: string | null;

  @ForeignKey(() => OperationEntity, { name: 'cases_operation_id_fkey' })
  @Column({ name: 'operation_id', type: 'uuid', nullable: true })
  operationId!: string | null;

  @ForeignKey(() => EffectEntity, { name: 'cases_effect_id_fkey' })
  @Column({ name: 'effect_id', type: 'uuid', nullable: true })
  effectId!: string | null;

  @Column({ type: 'jsonb' })
  reason!: Reason;

  @Column({ type: 'jsonb', default: {} })
  evidence!: JsonObject;

  @Column({ name: 'opened_at', type: 'timestamptz', default: () => 'now()' })
  openedAt!: Date;

  @Column({ name: 'closed_at', type: 'timestamptz', nullable: true })
  closedAt!: Date | null;
}

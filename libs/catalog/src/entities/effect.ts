import type { EffectOutcome, JsonObject, Reason } from '#kernel';
import type { EffectKind } from '#protocol';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { EngineEntity } from './engine.ts';
import { ClaimEntity, OperationEntity } from './operation.ts';

@Entity('effects')
@Unique('effects_operation_id_ordinal_key', ['operationId', 'ordinal'])
@Index('effects_by_claim', ['claimId'])
@Check(
  'effects_outcome_check',
  `outcome in ('pending', 'applied', 'refused', 'absent', 'partial', 'unknown', 'undone')`,
)
export class EffectEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'effects_pkey' })
  id!: string;

  @ForeignKey(() => OperationEntity, { name: 'effects_operation_id_fkey' })
  @Column({ name: 'operation_id', type: 'uuid' })
  operationId!: string;

  @ForeignKey(() => ClaimEntity, { name: 'effects_claim_id_fkey' })
  @Column({ name: 'claim_id', type: 'uuid' })
  claimId!: string;

  @Column({ type: 'integer' })
  ordinal!: number;

  @Column({ type: 'text' })
  kind!: EffectKind;

  @Column({ type: 'jsonb' })
  spec!: JsonObject;

  @Column({ type: 'text', default: 'pending' })
  outcome!: EffectOutcome;

  @Column({ type: 'jsonb', default: {} })
  facts!: JsonObject;

  @Column({ type: 'jsonb', nullable: true })
  reason!: Reason | null;

  @Column({ name: 'started_at', type: 'timestamptz', default: () => 'now()' })
  startedAt!: Date;

  @Column({ name: 'settled_at', type: 'timestamptz', nullable: true })
  settledAt!: Date | null;
}

@Entity('tokens')
@Unique('tokens_effect_id_key', ['effectId'])
@Index('tokens_open', ['engineId'], { where: 'settled_at is null' })
@Index('tokens_age', ['engineId', 'claimNumber'], { where: 'settled_at is not null' })
export class TokenEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'tokens_pkey' })
  token!: string;

  @ForeignKey(() => EffectEntity, { name: 'tokens_effect_id_fkey' })
  @Column({ name: 'effect_id', type: 'uuid' })
  effectId!: string;

  @ForeignKey(() => EngineEntity, { name: 'tokens_engine_id_fkey' })
  @Column({ name: 'engine_id', type: 'uuid' })
  engineId!: string;

  @Column({ name: 'claim_number', type: 'bigint' })
  claimNumber!: string;

  @Column({ type: 'text' })
  resource!: string;

  @Column({ name: 'settled_at', type: 'timestamptz', nullable: true })
  settledAt!: Date | null;
}

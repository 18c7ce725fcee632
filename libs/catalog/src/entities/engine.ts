import type { EngineState, Identities, Pin } from '#protocol';
import {
  Check,
  Column,
  Entity,
  ForeignKey,
  Index,
  JoinColumn,
  ManyToOne,
  OneToMany,
  PrimaryColumn,
  type Relation,
} from 'typeorm';
import { HostEntity } from './host.ts';

@Entity('engines')
@Index('engines_name', ['name'], { unique: true, where: `state <> 'failed'` })
@Index('engines_port', ['hostId', 'port'], { unique: true, where: `state <> 'failed'` })
@Check('engines_state_check', `state in ('creating', 'ready', 'failed', 'blocked')`)
@Check('engines_port_check', 'port between 1 and 65535')
export class EngineEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'engines_pkey' })
  id!: string;

  @Column({ type: 'text' })
  name!: string;

  @ForeignKey(() => HostEntity, { name: 'engines_host_id_fkey' })
  @Column({ name: 'host_id', type: 'text' })
  hostId!: string;

  @Column({ type: 'text' })
  state!: EngineState;

  @Column({ type: 'text' })
  image!: string;

  @Column({ type: 'integer' })
  port!: number;

  @Column({ name: 'network_pool', type: 'text' })
  networkPool!: string;

  @Column({ type: 'uuid' })
  identity!: string;

  @Column({ type: 'jsonb', default: {} })
  identities!: Identities;

  @Column({ type: 'text', array: true, default: [], comment: 'what the server offered when the engine was pinned' })
  extensions!: string[];

  @Column({ type: 'integer', nullable: true })
  generation!: number | null;

  @Column({ name: 'rule_generation', type: 'integer', nullable: true })
  ruleGeneration!: number | null;

  @Column({ name: 'waiting_for', type: 'text', nullable: true })
  waitingFor!: string | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({
    type: 'text',
    array: true,
    default: () => `'{local}'`,
    comment: 'network profiles that its rules in force hold',
  })
  profiles!: string[];

  @OneToMany(() => EngineGenerationEntity, (generation) => generation.engine)
  generations!: Relation<EngineGenerationEntity>[];
}

@Entity('engine_generations')
@Check('engine_generations_generation_check', 'generation > 0')
export class EngineGenerationEntity {
  @PrimaryColumn({ name: 'engine_id', type: 'uuid', primaryKeyConstraintName: 'engine_generations_pkey' })
  engineId!: string;

  @PrimaryColumn({ type: 'integer', primaryKeyConstraintName: 'engine_generations_pkey' })
  generation!: number;

  @Column({ type: 'jsonb' })
  pin!: Pin;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @ManyToOne(() => EngineEntity, (engine) => engine.generations)
  @JoinColumn({ name: 'engine_id', foreignKeyConstraintName: 'engine_generations_engine_id_fkey' })
  engine!: Relation<EngineEntity>;
}

@Entity('rule_generations')
@Check('rule_generations_generation_check', 'generation > 0')
export class RuleGenerationEntity {
  @ForeignKey(() => EngineEntity, { name: 'rule_generations_engine_id_fkey' })
  @PrimaryColumn({ name: 'engine_id', type: 'uuid', primaryKeyConstraintName: 'rule_generations_pkey' })
  engineId!: string;

  @PrimaryColumn({ type: 'integer', primaryKeyConstraintName: 'rule_generations_pkey' })
  generation!: number;

  @Column({ type: 'text' })
  digest!: string;

  @Column({ name: 'applied_at', type: 'timestamptz', default: () => 'now()' })
  appliedAt!: Date;
}

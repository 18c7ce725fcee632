import type { Reason } from '#kernel';
import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** One row: which installation this catalog belongs to. */
@Entity('installation')
@Check('installation_singleton_check', 'singleton')
export class InstallationEntity {
  @PrimaryColumn({ type: 'boolean', default: true, primaryKeyConstraintName: 'installation_pkey' })
  singleton!: boolean;

  @Column({ type: 'uuid' })
  id!: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

@Entity('hosts')
export class HostEntity {
  @PrimaryColumn({ type: 'text', primaryKeyConstraintName: 'hosts_pkey' })
  id!: string;

  @Column({ type: 'uuid' })
  identity!: string;

  @Column({
    name: 'claim_number',
    type: 'bigint',
    default: 0,
    comment: 'the last claim committed for this host; host/epoch and the engines follow it',
  })
  claimNumber!: string;

  @Column({ type: 'jsonb', nullable: true, comment: 'why the host takes no new work, with the case' })
  refusal!: Reason | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

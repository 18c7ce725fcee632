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
@Check('hosts_service_networks_max_check', 'service_networks_max >= 0')
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

  @Column({
    name: 'service_networks_max',
    type: 'integer',
    default: 0,
    comment: 'networks of environments that the host takes; set-up writes it',
  })
  serviceNetworksMax!: number;

  @Column({ name: 'service_address', type: 'text', default: '127.0.0.1' })
  serviceAddress!: string;

  /** As PostgreSQL writes ranges: `[20000,30000)`. */
  @Column({
    name: 'service_ports',
    type: 'int4range',
    nullable: true,
    comment: 'ports for services; null: this host publishes none',
  })
  servicePorts!: string | null;
}

/** What a private registry asks for when an image is pulled. */
@Entity('registries')
export class RegistryEntity {
  @PrimaryColumn({
    type: 'text',
    primaryKeyConstraintName: 'registries_pkey',
    comment: 'as an image names it: docker.io, registry.example.com:5000',
  })
  server!: string;

  @Column({ type: 'text' })
  username!: string;

  @Column({ name: 'password_sealed', type: 'bytea', select: false, comment: 'AES-256-GCM under the key file' })
  passwordSealed!: Buffer;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

import type { Role } from '#protocol';
import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

@Entity('api_keys')
@Unique('api_keys_name_key', ['name'])
@Unique('api_keys_key_hash_key', ['keyHash'])
@Check('api_keys_role_check', `role in ('viewer', 'developer', 'operator', 'admin')`)
export class ApiKeyEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'api_keys_pkey' })
  id!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({
    name: 'key_hash',
    type: 'bytea',
    select: false,
    comment: 'SHA-256 of the key: keys are random, so a slow hash would protect nothing more',
  })
  keyHash!: Buffer;

  @Column({ type: 'text' })
  role!: Role;

  @Column({ name: 'project_ids', type: 'uuid', array: true, nullable: true, comment: 'null: every project' })
  projectIds!: string[] | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;
}

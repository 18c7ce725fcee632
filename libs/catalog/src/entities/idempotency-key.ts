import { Check, Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { ApiKeyEntity } from './api-key.ts';
import { OperationEntity } from './operation.ts';
import { ProjectEntity } from './project.ts';

@Entity('idempotency_keys')
@Check('idempotency_keys_check', 'num_nonnulls(operation_id, project_id) = 1')
export class IdempotencyKeyEntity {
  @ForeignKey(() => ApiKeyEntity, { name: 'idempotency_keys_api_key_id_fkey' })
  @PrimaryColumn({ name: 'api_key_id', type: 'uuid', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  apiKeyId!: string;

  @PrimaryColumn({ type: 'text', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key!: string;

  @Column({
    name: 'request_digest',
    type: 'bytea',
    comment: 'SHA-256 of method, path and body: the same key for anything else is a mistake',
  })
  requestDigest!: Buffer;

  @ForeignKey(() => OperationEntity, {
    name: 'idempotency_keys_operation_id_fkey',
    deferrable: 'INITIALLY DEFERRED',
  })
  @Column({ name: 'operation_id', type: 'uuid', nullable: true })
  operationId!: string | null;

  @ForeignKey(() => ProjectEntity, { name: 'idempotency_keys_project_id_fkey', deferrable: 'INITIALLY DEFERRED' })
  @Column({ name: 'project_id', type: 'uuid', nullable: true })
  projectId!: string | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

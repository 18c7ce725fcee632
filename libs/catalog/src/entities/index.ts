/** Every table of the catalog as TypeORM knows it. The migrations are the truth; a contract test proves that these agree. */
import { ApiKeyEntity } from './api-key.ts';
import { AuditEntity } from './audit.ts';
import { CaseEntity } from './case.ts';
import { EffectEntity, TokenEntity } from './effect.ts';
import { EngineEntity, EngineGenerationEntity, RuleGenerationEntity } from './engine.ts';
import { EnvironmentEntity, LoginEntity, ServiceEntity, ServiceSecretEntity } from './environment.ts';
import { HostEntity, InstallationEntity, RegistryEntity } from './host.ts';
import { IdempotencyKeyEntity } from './idempotency-key.ts';
import { InboxEntity, OutboxEntity } from './message.ts';
import { ClaimEntity, JobEntity, OperationEntity } from './operation.ts';
import { ProjectEntity } from './project.ts';

export const ENTITIES = [
  InstallationEntity,
  ProjectEntity,
  ApiKeyEntity,
  HostEntity,
  RegistryEntity,
  EngineEntity,
  EngineGenerationEntity,
  RuleGenerationEntity,
  EnvironmentEntity,
  LoginEntity,
  ServiceEntity,
  ServiceSecretEntity,
  OperationEntity,
  JobEntity,
  ClaimEntity,
  EffectEntity,
  TokenEntity,
  CaseEntity,
  OutboxEntity,
  InboxEntity,
  IdempotencyKeyEntity,
  AuditEntity,
] as const;

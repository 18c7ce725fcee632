/** What Nest injects by: classes of ours are plain, and wired in gateway.module.ts. */
export const ENVIRONMENTS = Symbol('Environments');
export const CREDENTIALS = Symbol('Credentials');
export const OPERATIONS_ASKED = Symbol('Operations');
export const SERVICE_LOGS = Symbol('ServiceLogs');
export const PROJECTS = Symbol('Projects');
export const OPERATION_FEED = Symbol('OperationFeed');
export const ADMIN = Symbol('Admin');
export const GATEWAY_METRICS = Symbol('GatewayMetrics');
export const CATALOG_LINK = Symbol('CatalogLink');
export const OPENAPI_DOCUMENT = Symbol('OpenApiDocument');
export const DIGEST_KEY = Symbol('DigestKey');
export const REGISTRIES = Symbol('Registries');

// The arrows of the house: apps -> shell -> adapters -> pure. Every rule says what breaks without it.

const pure = '^libs/(kernel|protocol|hba)/';
const shell = '^libs/(effects|receipts|fencing|engines)/';
const adapter = '^libs/(catalog|broker|docker|postgres|telemetry|settings)/';
const tests = '\\.test\\.ts$|^libs/testing/|^test/';

/**
 * Only `homes` may reach the npm packages `packages`.
 * @param {string} name
 * @param {string} comment
 * @param {string} packages
 * @param {string} homes
 * @returns {import('dependency-cruiser').IForbiddenRuleType}
 */
const onlyBehind = (name, comment, packages, homes) => ({
  name,
  severity: 'error',
  comment,
  from: { path: '^(apps|libs)/', pathNot: [homes, tests] },
  to: { path: `^node_modules/(${packages})(/|$)` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'pure-stays-pure',
      severity: 'error',
      comment:
        'kernel, protocol and hba decide. They are replayed in recovery, in the model and from seeds, so they may ' +
        'depend on nothing that has a clock, a socket or a framework: no npm package, no node:*, no other library.',
      from: { path: pure, pathNot: tests },
      to: { pathNot: pure },
    },
    {
      name: 'adapter-not-to-adapter',
      severity: 'error',
      comment:
        'An adapter knows one foreign system and classifies its errors. Two that know each other make failures of ' +
        'one look like failures of the other. What both need is a plain type in the kernel.',
      from: { path: adapter, pathNot: tests },
      to: { path: adapter, pathNot: '^libs/$1/' },
    },
    {
      name: 'adapter-not-to-shell',
      severity: 'error',
      comment:
        'Adapters carry what they are given; when an effect is done, and with what record, is decided above them.',
      from: { path: adapter, pathNot: tests },
      to: { path: shell },
    },
    {
      name: 'library-has-a-layer',
      severity: 'error',
      comment: 'A library that none of the layers above names would be outside of every rule.',
      from: { path: '^libs/', pathNot: [pure, shell, adapter, '^libs/testing/'] },
      to: {},
    },
    {
      name: 'library-not-to-app',
      severity: 'error',
      comment: 'A library that imports a process can only be used in that process.',
      from: { path: '^libs/' },
      to: { path: '^apps/' },
    },
    {
      name: 'app-not-to-app',
      severity: 'error',
      comment: 'Processes meet in the catalog, the broker and the receipts, never in memory: each may die alone.',
      from: { path: '^apps/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'testing-only-from-tests',
      severity: 'error',
      comment: 'Production code holds no fault switches: proxies and worlds stay outside of it.',
      from: { path: '^(apps|libs)/', pathNot: tests },
      to: { path: '^(libs/testing|test)/' },
    },
    {
      name: 'library-through-its-index',
      severity: 'error',
      comment: 'Libraries meet through #name. A relative path into another library goes around what it publishes.',
      from: { path: '^(apps|libs|test)/([^/]+)/' },
      to: {
        path: '^libs/',
        pathNot: '^$1/$2/',
        dependencyTypesNot: ['aliased-subpath-import'],
      },
    },
    {
      name: 'only-effects-deep',
      severity: 'error',
      comment: 'Only the effects publish one folder per kind; every other library has one door, its index.',
      from: { path: '^(apps|libs|test)/([^/]+)/' },
      to: { path: '^libs/[^/]+/src/.', pathNot: ['^$1/$2/', '^libs/[^/]+/src/index\\.ts$', '^libs/effects/src/'] },
    },
    {
      name: 'docker-only-on-its-host',
      severity: 'error',
      comment:
        'Whoever reaches the Docker socket is root on the host. The processes that the outside speaks to never do: what ' +
        'they want of the daemon they ask the worker for.',
      from: { path: '^apps/(gateway|reconciler|cli)/' },
      to: { path: '^libs/docker/', reachable: true },
    },
    onlyBehind(
      'docker-behind-its-adapter',
      'Docker answers are classified once, in libs/docker; elsewhere a lost reply would look like a refusal.',
      'dockerode|@types/dockerode',
      '^libs/docker/',
    ),
    onlyBehind(
      'broker-behind-its-adapter',
      'Acknowledgement after settlement is a promise of libs/broker; a second channel would not keep it.',
      'amqplib',
      '^libs/broker/',
    ),
    onlyBehind(
      'pg-behind-its-adapters',
      'SQLSTATEs and lost connections are classified once: in libs/postgres for engines, in libs/catalog for the catalog.',
      'pg|@types/pg|pg-connection-string',
      '^libs/(postgres|catalog)/',
    ),
    onlyBehind(
      'typeorm-behind-the-catalog',
      'Every write to the catalog is a named statement with the expected state in it; entities alone would allow others.',
      'typeorm',
      '^libs/catalog/',
    ),
    onlyBehind(
      'telemetry-behind-its-adapter',
      'One set of log fields and one redaction: a second logger would have neither.',
      'pino|prom-client',
      '^libs/telemetry/',
    ),
    onlyBehind(
      'nest-at-the-edge',
      'Libraries are plain classes and functions, wired by the apps. Only the transport strategy extends a Nest class.',
      '@nestjs/[^/]+',
      '^(apps|libs/broker)/',
    ),
    {
      name: 'no-cycles',
      severity: 'error',
      comment:
        'A cycle has no first file to read, and with ES modules may meet a binding before it exists. Entities that ' +
        'name each other are exempt: TypeORM reads the other class in a callback, and Relation<> keeps the type away.',
      from: { pathNot: '^libs/catalog/src/entities/' },
      to: { circular: true },
    },
    {
      name: 'names-that-say-what-for',
      severity: 'error',
      comment: 'utils, helpers, common and manager say nothing, so everything ends up in them.',
      from: {},
      to: { path: '/(utils?|helpers?|common|[^/]*manager)[./]', pathNot: '^node_modules/' },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      comment: 'An import that resolves to nothing fails at start.',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-development-package-in-production',
      severity: 'error',
      comment: 'The packaged form installs without development packages.',
      from: { path: '^(apps|libs)/', pathNot: tests },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: '^node_modules/@types/' },
    },
    {
      name: 'set-up-needs-only-node',
      severity: 'error',
      comment:
        'deploy/local runs before anything is installed, on the Node that the machine brought. What it wants from a ' +
        'package after `npm ci` it imports there and then, with `await import()`.',
      from: { path: '^deploy/local/.*\\.mjs$' },
      to: { dynamic: false, dependencyTypesNot: ['core', 'local'] },
    },
    {
      name: 'cli-speaks-only-rest',
      severity: 'error',
      comment:
        'The command line is a client like any other: what it can do, a script with an API key can do. The settings ' +
        'tell it where the gateway is, and `doctor` what to look at; receipts are read by `doctor` as the worker reads them.',
      from: { path: '^apps/cli/', pathNot: tests },
      to: { path: [shell, adapter], pathNot: '^libs/(settings|receipts)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: ['^dist/', '^\\.cache/'] },
    // Types count: a pure file that needs a type of an adapter is not pure.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['source', 'import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.d.ts'],
    },
    cache: false,
  },
};

import type { Command } from 'commander';
import { gatewayFrom, settingsFrom } from '../connection.ts';
import { checkFirewall } from '../doctor/firewall.ts';
import { finding, type Finding } from '../doctor/finding.ts';
import { checkCases, checkEngines, checkEnvironments, checkGateway, checkOperations } from '../doctor/gateway.ts';
import { checkDisk, checkFiles, checkLock, checkPasses, checkProcesses, checkReceipts } from '../doctor/host.ts';
import { checkBroker, checkCatalog, checkDocker } from '../doctor/servers.ts';
import { EXIT } from '../failure.ts';
import { withJson, type JsonOption } from '../options.ts';
import { RestClient } from '../rest-client.ts';
import { show, table } from '../terminal.ts';
import type { Context } from './context.ts';

/** @param exitWith 1 when a check failed; a warning is not a failure */
export function doctorCommand(parent: Command, context: Context, exitWith: (code: number) => void): void {
  withJson(parent.command('doctor'))
    .description('look whether everything on this host works; changes nothing')
    .action(async ({ json }: JsonOption) => {
      const findings = await examine(context.env);
      show(context.terminal, json === true, { findings }, () =>
        table(findings.map(({ status, check, detail }) => [status, check, detail])),
      );
      if (findings.some(({ status }) => status === 'failed')) exitWith(EXIT.failed);
    });
}

async function examine(env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const settings = settingsFrom(env);
  const gateway = gatewayFrom(env);
  const client = new RestClient(gateway);
  const onHost = Promise.all([
    finding('files', () => checkFiles(settings)),
    finding('disk', () => checkDisk(settings)),
    finding('docker', () => checkDocker(settings.dockerHost)),
    finding('catalog', () => checkCatalog(settings.catalogUrl)),
    finding('broker', () => checkBroker(settings.brokerUrl)),
    finding('processes', () => checkProcesses(settings)),
    finding('lock', () => checkLock(settings, env)),
    finding('passes', () => checkPasses(settings)),
    finding('receipts', () => checkReceipts(settings)),
    finding('firewall', () => checkFirewall(settings)),
  ]);
  const answering = await finding('gateway', () => checkGateway(client, gateway.url));
  // Without a gateway each of these would only say so again.
  const shown =
    answering.status === 'failed'
      ? []
      : await Promise.all([
          finding('engines', () => checkEngines(client)),
          finding('environments', () => checkEnvironments(client)),
          finding('operations', () => checkOperations(client)),
          finding('cases', () => checkCases(client)),
        ]);
  return [...(await onHost), answering, ...shown];
}

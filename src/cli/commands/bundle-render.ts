import { parseAvailableApis, withAvailableApis } from '../../bundle/plain/available-apis.js';
import { type CertificateProvider, certificateProviders } from '../../bundle/plain/certificates.js';
import { convertRegistryV1 } from '../../bundle/plain/convert.js';
import type { Finding } from '../../bundle/plain/finding.js';
import type { PlainObject } from '../../bundle/plain/object.js';
import { writeObjectDirectory } from '../../bundle/plain/object-directory.js';
import { readPlainDirectory } from '../../bundle/plain/plain-directory.js';
import { writeObjects } from '../../bundle/plain/write.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import { statIfThere } from '../../source/source.js';
import { readBundle } from '../bundle-content.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { catalogFormat } from '../formats.js';
import { readInput, readInputFile } from '../input.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';
import { inSource, tellFindings, tellWarnings } from './bundle-findings.js';

interface BundleRenderOptions extends GlobalOptions {
  installNamespace?: string;
  watchNamespace?: string[];
  certProvider: string;
  config?: string;
  format: string;
  availableApis?: string;
  /** True where the option has no value. */
  optionalKinds?: string[] | true;
  output?: string;
  outputDir?: string;
}

/**
 * `opmate bundle render`: the manifests that installing a bundle applies. All that speaks against it goes to
 * stderr, with exit code 3, and nothing is written.
 */
export async function bundleRender(
  context: CommandContext,
  reference: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as BundleRenderOptions;
  const output = catalogFormat(options.output);
  const provider = providerOf(options.certProvider);
  checkOptions(options);
  return useSession(context, options, async (session) => {
    const isDirectory = (await statIfThere(reference))?.isDirectory() === true;
    const apis =
      options.availableApis === undefined
        ? undefined
        : parseAvailableApis(
            (await readInputFile(options.availableApis)).toString('utf8'),
            options.availableApis,
          );
    const made =
      options.format === 'plain'
        ? await renderPlain(reference, isDirectory, session)
        : await renderRegistryV1(context, reference, isDirectory, options, provider, session);
    const named = inSource(reference, isDirectory, [options.config]);
    tellWarnings(session, made.warnings.map(named));
    let { objects, findings } = made;
    if (apis !== undefined && findings.length === 0) {
      const { optionalKinds } = options;
      const optional = optionalKinds === true ? 'all' : new Set(optionalKinds);
      const available = withAvailableApis(objects, apis, optional);
      ({ objects, findings } = available);
      for (const { kind, name, apiVersion } of available.skipped) {
        session.logger.log(
          'warn',
          `${kind} ${quoteGo(name)}: left out, for the cluster has no ${apiVersion} ${kind}`,
        );
      }
    }
    session.logger.close();
    if (findings.length > 0) {
      await tellFindings(context, findings.map(named));
      return exitCodes.findings;
    }
    const { signal } = session;
    if (options.outputDir === undefined) {
      await writeAll(context.stdout, writeObjects(objects, output, { signal }), signal);
    } else await writeObjectDirectory(objects, options.outputDir, { signal });
    return exitCodes.done;
  });
}

interface Rendered {
  objects: PlainObject[];
  findings: Finding[];
  warnings: Finding[];
}

async function renderRegistryV1(
  context: CommandContext,
  reference: string,
  isDirectory: boolean,
  options: BundleRenderOptions,
  provider: CertificateProvider,
  session: CommandSession,
): Promise<Rendered> {
  const config =
    options.config === undefined
      ? undefined
      : { text: (await readInput(options.config, context)).toString('utf8'), file: options.config };
  const files = await readBundle(reference, isDirectory, session);
  return convertRegistryV1(files, {
    installNamespace: options.installNamespace ?? '',
    watchNamespaces: options.watchNamespace,
    provider,
    config,
  });
}

function renderPlain(reference: string, isDirectory: boolean, session: CommandSession): Promise<Rendered> {
  if (isDirectory) return readPlainDirectory(reference, { signal: session.signal });
  throw new OpmateError('UNSUPPORTED', `${reference}: is no directory`, {
    hint: 'the format plain is read from a directory of manifests',
  });
}

function providerOf(text: string): CertificateProvider {
  const provider = certificateProviders.find((known) => known === text);
  if (provider !== undefined) return provider;
  throw new UsageError(
    `invalid --cert-provider value ${quoteGo(text)}, expected (${certificateProviders.join('|')})`,
  );
}

function checkOptions(options: BundleRenderOptions): void {
  const { format, installNamespace } = options;
  if (format !== 'registry-v1' && format !== 'plain') {
    throw new UsageError(`invalid --format value ${quoteGo(format)}, expected (registry-v1|plain)`);
  }
  if (options.optionalKinds !== undefined && options.availableApis === undefined) {
    throw new UsageError('--optional-kinds: needs --available-apis', {
      hint: 'write the kinds of the cluster with kubectl api-resources > FILE',
    });
  }
  if (options.outputDir !== undefined && options.output === 'json') {
    throw new UsageError('--output-dir: writes YAML', { hint: 'leave -o json away' });
  }
  if (format === 'registry-v1') {
    if (installNamespace !== undefined && installNamespace !== '') return;
    throw new UsageError('--install-namespace is missing', {
      hint: 'say where the operator is to be installed, e.g. --install-namespace widget-system',
    });
  }
  const { watchNamespace, config, certProvider } = options;
  const needless = [
    ['--install-namespace', installNamespace !== undefined],
    ['--watch-namespace', watchNamespace !== undefined],
    ['--config', config !== undefined],
    ['--cert-provider', certProvider !== 'none'],
  ].find(([, isGiven]) => isGiven === true);
  if (needless === undefined) return;
  throw new UsageError(`${String(needless[0])}: plain manifests are applied as they are`, {
    hint: 'leave the option away, or give a bundle of the format registry-v1',
  });
}

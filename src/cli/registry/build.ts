import { stat } from 'node:fs/promises';
import { logError } from '../../core/log.js';
import { type BuiltIndex, type OperatorSource, buildIndex } from '../../api/indexes/build-index.js';
import type { StoredImage } from '../../api/images/image-output.js';
import { UsageError } from '../../core/errors.js';
import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, list, requiredUnless, text } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { readAddPlan, warnOfFlags } from '../index/add-bundles.js';
import { describeOutput, nextAfterImage } from '../index/image-output.js';
import { writeAll } from '../output.js';
import { count, shellWord } from '../printable.js';
import { permissiveFlag } from './database.js';
import { getAppRegistrySource, reportingProblems } from './manifest-index.js';

const flags = {
  ...grouped('Input', {
    appregistryNamespace: requiredUnless(
      ['manifests', 'bundles'],
      text('[host/]namespace', 'app-registry namespace, or ./DIR with downloaded archives', {
        excludes: ['manifests', 'bundles'],
      }),
    ),
    appregistryEndpoint: text('url', 'address of the app registry (default: https://quay.io/cnr)', {
      needs: 'appregistryNamespace',
    }),
    manifests: text('directory', 'directory of package manifests', { excludes: ['bundles'] }),
    bundles: list('bundle', 'bundle images or directories, or a file with one image per line', {
      mayBeNone: true,
    }),
    from: text('image', 'base image, or scratch (default: quay.io/operator-framework/opm:v1.73.0)'),
  }),
  authToken: text('token', 'app registry token, sent verbatim', {
    group: 'Registry',
    needs: 'appregistryNamespace',
  }),
  ...grouped('Output', {
    to: requiredUnless(
      ['save'],
      text('reference', 'push the image to a reference, oci:DIR:TAG or oci-archive:FILE'),
    ),
    save: text('path', 'save the image to a docker-archive file'),
    dbOnly: flag('write only bundles.db to the --save directory', { needs: 'save', excludes: ['to'] }),
  }),
  permissive: permissiveFlag,
};

type BuildOptions = FlagValues<typeof flags> & GlobalOptions;

/** `opmate registry build`; exit code 4 if `--permissive` skipped something. (Source: enhancement "Disconnected OLM".) */
export const command = defineCommand({
  summary: 'build an index image from an app registry, package manifests or bundles',
  flags,
  commonFlags: ['appregistryNamespace', 'appregistryEndpoint', 'manifests', 'bundles', 'to', 'save'],
  examples: {
    'Build an index image from a bundle':
      'opmate registry build --bundles ./bundle --from scratch --to registry.example.com/demo/new-index:v1',
    'Write a database from several bundles':
      'opmate registry build --bundles registry.example.com/demo/bundle:v1.0.0,registry.example.com/demo/bundle:v1.1.0 --save . --db-only',
  },
  async runInSession({ context, options, session }) {
    const { to, save, dbOnly } = options;
    const output = dbOnly ? { databaseDirectory: save as string } : { to, save };
    const source = await readSource(context, options);
    const { permissive, from } = options;
    const { logger } = session;
    if (source.kind === 'bundles') warnOfFlags(options, source.options ?? {}, logger);
    const built = await reportingProblems(session, () =>
      buildIndex(source, session, {
        output,
        permissive,
        baseImage: from,
        onLoaded: ({ problems }) => problems.forEach((problem) => logError(session.logger, problem)),
      }),
    );
    reportEnding(logger, describeIndex(built), nextAfterBuild(built, options));
    const names = built.database === undefined ? built.images.map(({ name }) => name) : [built.database];
    await writeAll(context.stdout, names.map((name) => `${name}\n`).join(''));
    return built.problems.length === 0 ? exitCodes.done : exitCodes.partly;
  },
});

function describeIndex({ bundles, packages, problems, images, database }: BuiltIndex): string[] {
  const left = problems.length === 0 ? '' : `, ${count(problems.length, 'problem')}`;
  const contents = `${count(bundles.length, 'bundle')}, ${count(packages.length, 'package')}${left}`;
  if (database !== undefined) return [`wrote ${database}: ${contents}`];
  return [`built an index of ${contents}`, ...images.map(describeOutput)];
}

function nextAfterBuild({ database, images }: BuiltIndex, options: BuildOptions): string {
  if (database !== undefined) return `opmate registry serve ${shellWord(database)}`;
  return nextAfterImage({ to: (images[0] as StoredImage).to }, (image) => `opmate serve ${image}`, options);
}

async function readSource(context: CommandContext, options: BuildOptions): Promise<OperatorSource> {
  const { appregistryNamespace, appregistryEndpoint, authToken, manifests, bundles } = options;
  const isLocal = /^\.{0,2}\//.test(appregistryNamespace ?? '');
  for (const [flag, value] of [
    ['--appregistry-endpoint', appregistryEndpoint],
    ['--auth-token', authToken],
  ] as const) {
    if (isLocal && value !== undefined)
      throw new UsageError(`${flag}: needs the --appregistry-namespace of a server`);
  }
  if (bundles !== undefined) {
    const [only] = bundles;
    const isList = bundles.length === 1 && (await isFile(only as string));
    const plan = await readAddPlan(
      context,
      isList ? { ...options, fromFile: only } : options,
      isList ? [] : bundles,
    );
    if (plan.references.length === 0) throw new UsageError('--bundles: no bundles');
    return { kind: 'bundles', ...plan };
  }
  if (manifests !== undefined) return { kind: 'manifests', directory: manifests };
  const text = appregistryNamespace as string;
  if (isLocal) return { kind: 'archives', directory: text };
  return getAppRegistrySource(text, options);
}

/** Reports whether a value of `--bundles` is a file with a list. */
async function isFile(text: string): Promise<boolean> {
  const stats = await stat(text).catch(() => undefined);
  return stats?.isFile() === true;
}

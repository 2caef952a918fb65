import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, list, text } from '../command/flags.js';
import { permissiveFlag } from './database.js';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { type Reference, parseTargetReference } from '../../core/reference.js';
import type { BuiltImage } from '../../oci/image/image-builder.js';
import { getTargetReference } from '../../mirror/mapping/image-location.js';
import { parseTypedReference } from '../../mirror/mapping/image-names.js';
import { formatPlatform, getSubject } from '../../oci/image/platform.js';
import { replaceFiles, replacedFile } from '../../files/replace-file.js';
import {
  type AppRegistryNamespace,
  loadAppRegistryNamespace,
  parseAppRegistryNamespace,
} from '../../source/app-registry.js';
import { loadAppRegistry } from '../../sqlite/legacy/appregistry.js';
import type { Database } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { buildIndexImages, settleDatabase } from '../../sqlite/read/index-image.js';
import { type LoadReport, ManifestsError } from '../../sqlite/legacy/manifest-loader.js';
import { loadPackageManifests } from '../../sqlite/legacy/package-manifests.js';
import { type AddPlan, addToDatabase, planAdd, reportAdded } from './add-bundles.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { type OpenedBase, openBase, putImages } from '../../api/images/image-output.js';
import { nextAfterImage } from '../index/image-output.js';
import { writeAll } from '../output.js';
import { count, shellWord } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';
import { tellProblems } from './manifest-index.js';

/** Where the operators come from. */
type Input =
  | { kind: 'namespace'; namespace: AppRegistryNamespace; label: string }
  | { kind: 'archives'; directory: string; label: string }
  | { kind: 'manifests'; directory: string; label: string }
  | { kind: 'bundles'; plan: AddPlan; label: string };

/** Where the result goes; at least one of them is there. */
interface Output {
  to: { reference: Reference; text: string } | undefined;
  /** File of the archive, or with `dbOnly` the directory of the database. */
  save: string | undefined;
  dbOnly: boolean;
}

const databaseName = 'bundles.db';

const flags = {
  appregistryNamespace: text(
    '[host/]namespace',
    'app-registry namespace, or ./DIR with downloaded archives',
    { group: 'Input' },
  ),
  appregistryEndpoint: text('url', 'address of the app registry (default: https://quay.io/cnr)', {
    group: 'Input',
  }),
  authToken: text('token', 'app registry token, sent verbatim', { group: 'Registry' }),
  manifests: text('directory', 'directory of package manifests', { group: 'Input' }),
  bundles: list('bundle', 'bundle images or directories, or a file that lists them', {
    mayBeNone: true,
    group: 'Input',
  }),
  from: text('image', 'base image, or scratch (default: quay.io/operator-framework/opm:v1.73.0)', {
    group: 'Input',
  }),
  to: text('reference', 'push the image to a reference, oci:DIR:TAG or oci-archive:FILE', {
    group: 'Output',
  }),
  save: text('path', 'save the image as an archive for docker load', { group: 'Output' }),
  dbOnly: flag('write only bundles.db to the --save directory', { group: 'Output' }),
  permissive: permissiveFlag,
};

type BuildOptions = FlagValues<typeof flags> & GlobalOptions;

/**
 * `opmate registry build`: makes an index image of all operators of an app registry's namespace, of package
 * manifests, or of bundles; pushes it, saves it as an archive, or writes its database only. Prints what was made.
 * Returns 4 where `--permissive` has left something out. (Source: enhancement "Disconnected OLM".)
 */
export const command = defineCommand({
  summary: 'build an index image from an app registry, package manifests or bundles',
  flags,
  examples: [
    [
      'Build an index image from a bundle',
      'opmate registry build --bundles ./bundle --from scratch --to registry.example.com/demo/new-index:v1',
    ],
    [
      'Write a database from several bundles',
      'opmate registry build --bundles registry.example.com/demo/bundle:v1.0.0,registry.example.com/demo/bundle:v1.1.0 --save . --db-only',
    ],
  ],
  async run({ context, options }) {
    const output = parseOutput(context, options);
    const input = await readInput(context, options);
    await checkSave(output);
    return useSession(context, options, async (session) => {
      // Found out before anything is downloaded whether there is something to build on.
      const base = output.dbOnly ? undefined : await openBase(session, options.from, '--from');
      try {
        return await withTemporaryDirectory(session, async (directory) => {
          const file = path.join(directory, databaseName);
          const code = await load(session, input, file, options);
          session.logger.say('building catalog...');
          await settleDatabase(file, input.label);
          const made =
            base === undefined
              ? [await saveDatabase(session, file, input, output.save as string)]
              : await makeImages(session, file, { input, output, directory, base });
          reportEnding(session.logger, [], nextAfterBuild(output));
          await writeAll(context.stdout, made.map((line) => `${line}\n`).join(''));
          return code;
        });
      } finally {
        await base?.close();
      }
    });
  },
});

/** Returns the command that usually follows: for a pushed image, the saved database or the archive. */
function nextAfterBuild({ to, save, dbOnly }: Output): string {
  if (to !== undefined) return nextAfterImage({ to: to.reference }, (image) => `opmate serve ${image}`);
  const saved = save as string;
  if (dbOnly) return `opmate registry serve ${shellWord(path.join(saved, databaseName))}`;
  return `opmate oci copy docker-archive:${shellWord(saved)} REGISTRY/NAME:TAG`;
}

async function readInput(context: CommandContext, options: BuildOptions): Promise<Input> {
  const { appregistryNamespace, appregistryEndpoint, authToken, manifests, bundles } = options;
  const sources = [appregistryNamespace, manifests, bundles].filter((value) => value !== undefined);
  if (sources.length !== 1) {
    throw new UsageError('expected one of --appregistry-namespace, --manifests and --bundles', {
      hint: 'name the source of the operators with one of them',
    });
  }
  const isLocal = appregistryNamespace === undefined || /^\.{0,2}\//.test(appregistryNamespace);
  for (const [flag, value] of [
    ['--appregistry-endpoint', appregistryEndpoint],
    ['--auth-token', authToken],
  ] as const) {
    if (isLocal && value !== undefined)
      throw new UsageError(`${flag}: needs the --appregistry-namespace of a server`);
  }
  if (bundles !== undefined) {
    const [only] = bundles;
    const isList = bundles.length === 1 && (await statIfPresent(only as string))?.isFile() === true;
    const plan = await planAdd(
      context,
      isList ? { ...options, fromFile: only } : options,
      isList ? [] : bundles,
    );
    if (plan.references.length === 0) throw new UsageError('--bundles: no bundles');
    return { kind: 'bundles', plan, label: count(plan.references.length, 'bundle') };
  }
  if (manifests !== undefined) return { kind: 'manifests', directory: manifests, label: manifests };
  const text = appregistryNamespace as string;
  if (isLocal) return { kind: 'archives', directory: text, label: text };
  const namespace = parseAppRegistryNamespace(text, {
    endpoint: appregistryEndpoint,
    useHttp: options.useHttp === true || options.skipTls === true,
  });
  return { kind: 'namespace', namespace, label: namespace.label };
}

function parseOutput(context: CommandContext, options: BuildOptions): Output {
  const { to, save, dbOnly } = options;
  if (dbOnly && save === undefined)
    throw new UsageError('--db-only needs --save DIR', {
      hint: `name the directory to write ${databaseName} to`,
    });
  if (dbOnly && to !== undefined)
    throw new UsageError('--db-only and --to cannot be used together', {
      hint: 'a database is not an image',
    });
  if (to === undefined && save === undefined) {
    throw new UsageError('no destination for the catalog', {
      hint: 'add --to REFERENCE to push it, or --save FILE to write an archive',
    });
  }
  return { to: to === undefined ? undefined : { reference: getTarget(context, to), text: to }, save, dbOnly };
}

function getTarget({ workingDirectory }: CommandContext, text: string): Reference {
  const isFile = text.startsWith('file://');
  const target = isFile
    ? getTargetReference(parseTypedReference(text), workingDirectory)
    : parseTargetReference(text);
  if (target.digest !== undefined)
    throw new UsageError(`--to ${text}: names a digest`, { hint: 'name a tag to push to' });
  if (target.transport === 'docker-archive')
    throw new UsageError(`--to ${text}: an archive cannot be pushed to`, { hint: 'use --save FILE' });
  if (target.tag !== undefined) return target;
  if (target.transport === 'docker')
    throw new UsageError(`--to ${text}: missing tag`, { hint: `add a tag, e.g. ${text}:latest` });
  return { ...target, tag: 'latest' };
}

/** Finds out before anything is downloaded whether what is saved has a place. */
async function checkSave({ save, dbOnly }: Output): Promise<void> {
  if (save === undefined) return;
  const isDirectory = (await statIfPresent(save))?.isDirectory();
  if (dbOnly) {
    if (isDirectory !== false) return;
    throw new OpmateError('IO', `${save}: is not a directory`, {
      file: save,
      hint: `name the directory to write ${databaseName} to`,
    });
  }
  if (isDirectory === true) {
    throw new OpmateError('IO', `${save}: is a directory`, {
      file: save,
      hint: 'name a file for the archive, or write the database alone with --db-only',
    });
  }
  const directory = path.dirname(path.resolve(save));
  await stat(directory + path.sep).catch((error: unknown) => {
    throw fileError(`${save}: its directory ${directory}`, error, { file: save });
  });
  await replacedFile(save);
}

/** Makes the database. Returns the exit code. */
async function load(
  session: CommandSession,
  input: Input,
  file: string,
  { permissive, authToken }: BuildOptions,
): Promise<number> {
  const { logger, signal } = session;
  const pulling = (name: string): void => logger.say(`pulling ${name}...`);
  if (input.kind === 'bundles') {
    for (const reference of new Set(input.plan.references)) pulling(reference);
    const outcome = await addToDatabase(session, input.plan, file, { create: true, name: databaseName });
    const code = outcome.failures.length === 0 ? exitCodes.done : reportAdded(logger, outcome, databaseName);
    if (outcome.added.size === 0) throw nothingIn(input.label);
    return code;
  }
  const loadInto = (database: Database): Promise<LoadReport> => {
    if (input.kind === 'manifests')
      return loadPackageManifests(database, input.directory, session, { permissive });
    if (input.kind === 'archives') return loadAppRegistry(database, input.directory, session, { permissive });
    return loadAppRegistryNamespace(database, input.namespace, session, {
      permissive,
      token: authToken,
      onPull: (name) => pulling(`${input.label}/${name}`),
    });
  };
  try {
    const report = await editDatabase(file, { create: true, name: databaseName, signal }, loadInto);
    tellProblems(session, report.problems);
    if (report.packages.length === 0) throw nothingIn(input.label);
    return report.problems.length === 0 ? exitCodes.done : exitCodes.partly;
  } catch (error) {
    if (error instanceof ManifestsError && error.problems.length > 1) tellProblems(session, error.problems);
    throw error;
  }
}

function nothingIn(label: string): OpmateError {
  return new OpmateError('NOT_FOUND', `${label}: no operators that could be part of a catalog`);
}

async function saveDatabase(
  { logger }: CommandSession,
  file: string,
  { label }: Input,
  directory: string,
): Promise<string> {
  const saved = path.join(directory, databaseName);
  await replaceFiles([{ target: saved, copyOf: file, mode: 0o644 }]);
  logger.say(`${label} saved to ${saved}`);
  return saved;
}

interface ImagePlan {
  input: Input;
  output: Output;
  directory: string;
  base: OpenedBase;
}

/** Pushes and saves the images of a database; returns what they are to be called. */
async function makeImages(
  session: CommandSession,
  file: string,
  { input, output, directory, base }: ImagePlan,
): Promise<string[]> {
  const { signal, logger, platform } = session;
  const { to, save } = output;
  const made: string[] = [];
  const images = await buildIndexImages(file, { bases: base.images, platform, directory, signal });
  if (to !== undefined) {
    logger.say('mirroring catalog...');
    made.push(await putImages(session, { to: to.reference }, images, directory));
    logger.say(`${input.label} mirrored to ${to.text}`);
  }
  if (save !== undefined) {
    logger.say('saving catalog...');
    const { saveDockerArchive } = await import('../../oci/image/docker-archive.js');
    const name = to?.reference.transport === 'docker' ? getName(to.reference) : undefined;
    const image = chooseImage(session, images);
    const { digest } = await saveDockerArchive(image, save, { name, directory, signal });
    made.push(getSubject(`docker-archive:${save}`, digest));
    logger.say(`${input.label} saved to ${save}`);
  }
  return made;
}

function getName({ registry, repository, tag }: Extract<Reference, { transport: 'docker' }>): string {
  return `${registry}/${repository}:${tag}`;
}

/** The image that goes into an archive, which holds one: of this machine's platform, or amd64, or the first. */
function chooseImage({ hostPlatform, logger }: CommandSession, images: readonly BuiltImage[]): BuiltImage {
  const first = images[0] as BuiltImage;
  const find = (architecture: string): BuiltImage | undefined =>
    images.find(({ platform }) => platform.architecture === architecture);
  const chosen = find(hostPlatform.architecture) ?? find('amd64') ?? first;
  if (images.length > 1)
    logger.log(
      'info',
      `the archive holds the image of ${formatPlatform(chosen.platform)}; --platform takes another`,
    );
  return chosen;
}

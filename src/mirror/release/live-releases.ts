import { withOpen } from '../../core/concurrency.js';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, UsageError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { getOrAdd } from '../../core/groups.js';
import { formatReference, parseReference } from '../../core/reference.js';
import { decodeUtf8 } from '../../document/go-json.js';
import { readRegularFile } from '../../files/read-file.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { holdOpen, openReference } from '../../oci/image/open.js';
import {
  buildGraphImage,
  defaultGraphBase,
  graphDataUrl,
  maxGraphDataBytes,
} from '../../release/graph-image.js';
import { releaseKeys } from '../../release/release-keys.js';
import { fetchReleaseSignature, signatureStores } from '../../release/release-signature.js';
import type { ReleaseType } from '../../release/select-releases.js';
import { maxGraphBytes, parseUpdateGraph } from '../../release/update-graph.js';
import { fetchUpdateGraph, readUrl, updateServices } from '../../release/update-service.js';
import type { Session } from '../../source/session.js';
import { type OpenPgpKeyring, parseKeyring } from '../../trust/openpgp-keyring.js';
import type { GraphImage, ReleaseAccess } from './open-releases.js';

/** Environment variables of oc-mirror for release services. */
const releaseVariables = {
  updateService: 'UPDATE_URL_OVERRIDE',
  signatureStore: 'OCP_SIGNATURE_URL',
  signatureKeys: 'OCP_SIGNATURE_VERIFICATION_PK',
} as const;

/** Options of reading releases from their services. */
export interface LiveReleaseOptions {
  session: Session;
  /** URL of an update service, or file URL of its responses; default that of the environment, else the public ones. */
  updateService?: URL | undefined;
  /** Base of the graph image; default `registry.access.redhat.com/ubi9/ubi:latest`. */
  graphBase?: string | undefined;
  /** URL or file of the graph data; default that of the public update service. */
  graphData?: string | undefined;
}

const maxKeyBytes = 1024 * 1024;

/** Returns access to releases by the services in the environment of a session, else the public ones. */
export function createLiveAccess(options: LiveReleaseOptions): ReleaseAccess {
  const { session } = options;
  const readKeys = createKeyReader(session);
  return {
    async readGraph(type, architecture, channel) {
      const label = `channel ${channel} (${architecture})`;
      const service =
        options.updateService ??
        serviceUrl(releaseVariables.updateService, updateServices[type], type === 'ocp', session);
      const bytes = await fetchUpdateGraph(service, { architecture, channel, label }, maxGraphBytes, session);
      return { graph: parseUpdateGraph(decodeUtf8(bytes), label), digest: computeDigest(bytes) };
    },
    async readSignature(image, version, type) {
      const keyring = await readKeys(type);
      const store = serviceUrl(releaseVariables.signatureStore, signatureStores[type], true, session);
      if (!store.pathname.endsWith('/')) store.pathname += '/';
      return fetchReleaseSignature(store, image, { keyring, now: session.now(), version, session });
    },
    async resolve(release) {
      return withOpen(openReference(release, session), async (opened) => {
        const { descriptor } = await opened.repository.getManifest(opened.reference, session);
        return { ...release, digest: descriptor.digest };
      });
    },
    open: (image) => openReference(image, session),
    graphImage: () => getGraphImage(options),
  };
}

/** Returns a function that reads the public keys of releases, once per type. It throws OpmateError. */
export function createKeyReader(session: Session): (type: ReleaseType) => Promise<OpenPgpKeyring> {
  const keyrings = new Map<ReleaseType, Promise<OpenPgpKeyring>>();
  return (type) => getOrAdd(keyrings, type, () => readReleaseKeys(type, session));
}

async function readReleaseKeys(type: ReleaseType, session: Session): Promise<OpenPgpKeyring> {
  const name = releaseVariables.signatureKeys;
  const file = session.environment[name];
  if (file === undefined || file === '') {
    if (type === 'ocp') return parseKeyring(Buffer.from(releaseKeys), 'release keys');
    throw new UsageError('no key for OKD releases', {
      hint: `set ${name} to the public key file`,
    });
  }
  const place = path.resolve(session.workingDirectory, file);
  const reading = readRegularFile(place, maxKeyBytes, { name: file });
  return parseKeyring(await reading.catch(throwFileError(name, { file })), file);
}

function serviceUrl(variable: string, defaultUrl: string, mayDiffer: boolean, { environment }: Session): URL {
  const text = environment[variable];
  if (text === undefined || text === '' || !mayDiffer) return new URL(defaultUrl);
  if (URL.canParse(text) && /^(?:https?|file):$/.test(new URL(text).protocol)) return new URL(text);
  throw new UsageError(`${variable} ${quoteGo(text)}: not an http, https or file URL`);
}

function getGraphImage(options: LiveReleaseOptions): GraphImage {
  const { session, graphBase = defaultGraphBase } = options;
  const url = getGraphData(options);
  const base = parseReference(graphBase);
  let built: { base: string; data: string } | undefined;
  let close = (): Promise<void> => Promise.resolve();
  const build = async () => {
    const data = await readUrl(url, maxGraphDataBytes, 'graph data', session);
    const opened = await openReference(base, session);
    const { descriptor } = await opened.repository.getManifest(opened.reference, session);
    const temporary = await makeTemporaryDirectory(session.temporaryDirectory, session.now());
    close = async () => {
      await temporary.remove();
      await opened.close();
    };
    const image = await buildGraphImage(
      data,
      { repository: opened.repository, reference: descriptor.digest },
      { directory: temporary.path, limits: session.limits, signal: session.signal },
    );
    built = { base: formatReference({ ...base, digest: descriptor.digest }), data: computeDigest(data) };
    return image;
  };
  let building: ReturnType<typeof build> | undefined;
  return {
    async open() {
      return holdOpen(await (building ??= build()));
    },
    made: () => built,
    async close() {
      await building?.catch(() => undefined);
      await close();
    },
  };
}

function getGraphData({ graphData, session }: LiveReleaseOptions): URL {
  if (graphData !== undefined) {
    if (/^(?:https?|file):\/\//.test(graphData) && URL.canParse(graphData)) return new URL(graphData);
    return pathToFileURL(path.resolve(session.workingDirectory, graphData));
  }
  const service = session.environment[releaseVariables.updateService];
  if (service === undefined || service === '' || service === updateServices.ocp) return new URL(graphDataUrl);
  throw new OpmateError('INVALID', 'the graph data of another update service is unknown', {
    subject: 'mirror.platform.graph',
    hint: `specify its URL or file with mirror.graphData, or unset ${releaseVariables.updateService}`,
  });
}

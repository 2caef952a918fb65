import path from 'node:path';
import { createFault, type Diagnostic } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { encodeDocuments } from '../../document/yaml/present.js';
import { findSetHazards } from '../../bundle/object-set/hazards.js';
import type { CertificateProvider } from '../../bundle/plain/registry-v1/certificates.js';
import {
  createChart,
  createDocuments,
  createKustomization,
  type DeploymentKind,
  type NewDeployment,
} from '../../cluster/documents/new-deployment.js';
import { listRefusedFields } from '../../kube/schema/validate-object.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import { writeNewFile } from '../../files/write-new-file.js';
import type { Resolution } from '../../graph/resolve.js';
import { digestOfImage } from '../../source/drivers/image.js';
import { parseImageReference } from '../../source/parse-place.js';
import { pinReference } from '../../source/place.js';
import type { Session } from '../../source/session.js';
import { describeChoice, resolveBundle, type ResolveBundleRequest } from '../bundle/resolve-bundle.js';
import type { NamedCatalog } from '../named-catalogs.js';
import { createClusterObjectSet } from './create-object-set.js';
import { validateOlmObject } from './validate-object.js';

/** Request for the documents that install an operator. */
export interface CreateDeploymentRequest {
  packageName: string;
  kind: DeploymentKind;
  /** Default: the package. */
  name?: string | undefined;
  namespace: string;
  /** Version range; empty for any. */
  versionRange?: string | undefined;
  channels?: readonly string[] | undefined;
  /** Installed bundle, which limits the choice to its upgrades. */
  installed?: ResolveBundleRequest['installed'];
  /** Catalog of the cluster; its name is that of the chosen catalog if the catalogs have names. */
  catalogNamespace?: string | undefined;
  /** Write the name of the chosen catalog. */
  namesCatalog?: boolean | undefined;
  /** `watchNamespace` and `deploymentConfig`. */
  config?: JsonObject | undefined;
}

/** Documents that install an operator, pinned to the resolved version. */
export interface CreatedDeployment {
  resolution: Resolution;
  /** Undefined if no bundle was chosen. */
  deployment?: NewDeployment;
  documents: JsonObject[];
  /** Reasons for the chosen bundle, one per line. */
  comments: string[];
  /** Fields that the API server refuses. */
  findings: Diagnostic[];
}

/**
 * Resolves the bundle of a package as OLM v1 does, and creates the documents that install it: a ClusterExtension, a
 * Subscription with its OperatorGroup, or a BundleDeployment, whose image is resolved to its digest. Throws OpmateError.
 */
export async function createDeployment(
  request: CreateDeploymentRequest,
  catalogs: readonly NamedCatalog[],
  session: Session,
): Promise<CreatedDeployment> {
  const { packageName, versionRange = '', channels = [], installed } = request;
  const { resolution } = await resolveBundle(
    { packageName, versionRange, channels, installed, policy: 'catalog-provided' },
    catalogs,
    session,
  );
  const { chosen } = resolution;
  if (chosen === undefined || resolution.outcome !== 'resolved') {
    return { resolution, documents: [], comments: [], findings: [] };
  }
  const { kind, name = packageName, namespace, catalogNamespace = 'olm', namesCatalog = false } = request;
  const image = kind === 'BundleDeployment' ? await pinImage(chosen.image, session) : chosen.image;
  const deployment: NewDeployment = {
    kind,
    name,
    namespace,
    packageName,
    bundle: { name: chosen.name, version: chosen.version, image },
    // A Subscription has exactly one channel.
    channels: kind === 'Subscription' ? chosen.channels.slice(0, 1) : channels,
    catalog: { name: namesCatalog ? chosen.catalog : '', namespace: catalogNamespace },
    config: request.config ?? {},
  };
  const documents = createDocuments(deployment);
  return {
    resolution,
    deployment,
    documents,
    comments: describeChoice(resolution, { ...chosen, image }),
    findings: documents.flatMap(findFaults),
  };
}

async function pinImage(image: string, session: Session): Promise<string> {
  const reference = parseImageReference(image);
  return pinReference(reference, await digestOfImage(reference, session)).text;
}

/** Returns the findings of the API server on a document of OLM v1. */
function findFaults(document: JsonObject): Diagnostic[] {
  if (document['kind'] !== 'ClusterExtension') return [];
  const subject = `ClusterExtension ${getText(document, 'metadata', 'name')}`;
  return listRefusedFields(validateOlmObject(document)).map(({ field, problem }) =>
    createFault('refused', `${field}: ${problem}`, { subject }),
  );
}

/** Files of a created deployment, by path. */
export function encodeDeployment(
  { deployment, documents, comments }: CreatedDeployment,
  form: 'yaml' | 'chart' | 'kustomize',
): Map<string, string> {
  if (deployment === undefined) return new Map();
  if (form === 'chart') return createChart(deployment, comments);
  if (form === 'kustomize') return createKustomization(documents, comments);
  return new Map([['deployment.yaml', encodeDocuments(documents, comments)]]);
}

/**
 * Writes files to a directory that is absent or empty; it appears complete or not at all. `isPrivate` is for files with
 * configuration, which may hold credentials: only the user can read them. Throws OpmateError.
 */
export async function writeDeploymentFiles(
  files: ReadonlyMap<string, string>,
  directory: string,
  { isPrivate = false }: { isPrivate?: boolean } = {},
): Promise<void> {
  const mode = isPrivate ? 0o600 : undefined;
  await fillDirectory(directory, async (staging) => {
    for (const [name, text] of files) {
      const file = path.join(staging, name);
      await makeDirectory(path.dirname(file));
      await writeNewFile(file, text, { mode });
    }
  });
}

/** Options of `createDeploymentObjectSet`. */
export interface DeploymentObjectSetOptions {
  provider?: CertificateProvider | undefined;
  /** System namespace to pack the objects into Secrets of; default: inline. */
  pack?: string | undefined;
  /** Bundle to read in place of its image. */
  reference?: string | undefined;
}

/** The ClusterObjectSet of a created ClusterExtension. */
export interface DeploymentObjectSet {
  /** Secrets, then the set. */
  documents: JsonObject[];
  findings: Diagnostic[];
  /** Problems that a cluster reports only after applying. */
  warnings: Diagnostic[];
}

/**
 * Creates the ClusterObjectSet that operator-controller writes for a created ClusterExtension, with all gates of its
 * configuration on. Throws OpmateError.
 */
export async function createDeploymentObjectSet(
  created: CreatedDeployment,
  session: Session,
  { provider, pack, reference = created.deployment?.bundle.image ?? '' }: DeploymentObjectSetOptions = {},
): Promise<DeploymentObjectSet> {
  const { deployment, documents } = created;
  const [extension] = documents;
  if (deployment?.kind !== 'ClusterExtension' || extension === undefined) {
    throw new OpmateError('USAGE', 'only a ClusterExtension has a ClusterObjectSet');
  }
  const { bundle, packageName } = deployment;
  const options = {
    extension,
    bundle: { ...bundle, package: packageName },
    provider,
    gates: { SingleOwnNamespaceInstallSupport: true, DeploymentConfig: true },
  };
  const inline = await createClusterObjectSet(reference, session, options);
  if (inline.set === undefined) {
    const refusal = inline.refusal && [refusedFinding(deployment.name, inline.refusal.message)];
    return { documents: [], findings: refusal ?? inline.findings, warnings: inline.warnings };
  }
  const packed =
    pack === undefined ? inline : await createClusterObjectSet(reference, session, { ...options, pack });
  return {
    documents: [...packed.secrets, ...(packed.set === undefined ? [] : [packed.set])],
    findings: [],
    warnings: [...inline.warnings, ...findSetHazards(inline.set)],
  };
}

function refusedFinding(name: string, problem: string): Diagnostic {
  return createFault('refused', problem, { subject: `ClusterExtension ${name}` });
}

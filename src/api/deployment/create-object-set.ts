import {
  createObjectSet,
  encodeObjectSet,
  type InstalledBundle,
} from '../../bundle/object-set/object-set.js';
import {
  type FeatureGates,
  findInstallRefusal,
  findObjectRefusal,
  type InstallRefusal,
} from '../../bundle/object-set/install-refusal.js';
import { packObjectSet } from '../../bundle/object-set/pack.js';
import type { CertificateProvider } from '../../bundle/plain/registry-v1/certificates.js';
import { convertRegistryV1 } from '../../bundle/plain/registry-v1/convert.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { encodeGoJson } from '../../document/go-json.js';
import { getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { propertiesAnnotation } from '../../model/bundle-keys.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from '../bundle/bundle-sources.js';

/** Options of `createClusterObjectSet`. */
export interface CreateObjectSetOptions extends BundleSourceOptions {
  /** ClusterExtension that the set belongs to. */
  extension: JsonObject;
  /** Bundle as resolution chose it; `properties` are read from the bundle. */
  bundle: Omit<InstalledBundle, 'properties'>;
  /** Default `none`. */
  provider?: CertificateProvider | undefined;
  /** Default: all off, as in operator-controller. */
  gates?: FeatureGates | undefined;
  /** Number of the revision, default 1. */
  revision?: number | undefined;
  /** Pack the objects into Secrets of this namespace, the system namespace of OLM v1; default: inline. */
  pack?: string | undefined;
}

/** A ClusterObjectSet as operator-controller writes it. */
export interface CreatedObjectSet {
  /** Undefined if operator-controller refuses the bundle or its configuration, or if there are findings. */
  set?: JsonObject;
  /** Secrets with the objects of the set; none unless they are packed. */
  secrets: JsonObject[];
  refusal?: InstallRefusal;
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

/**
 * Creates the ClusterObjectSet that operator-controller applies for a ClusterExtension and a bundle: its objects in
 * phases, with labels and annotations. Throws OpmateError for sources that cannot be read, and LimitError.
 */
export async function createClusterObjectSet(
  reference: string,
  session: Session,
  options: CreateObjectSetOptions,
): Promise<CreatedObjectSet> {
  return useSources(
    session,
    options,
    async (sources) => {
      const { files } = await sources.readBundle(reference);
      return convertFiles(files, options);
    },
    ({ set }) => set === undefined,
  );
}

function convertFiles(
  files: Parameters<typeof convertRegistryV1>[0],
  { extension, bundle: resolved, provider = 'none', gates = {}, revision, pack }: CreateObjectSetOptions,
): CreatedObjectSet {
  const installNamespace = getText(extension, 'spec', 'namespace');
  const config = getValue(extension, 'spec', 'config', 'inline');
  const { bundle, objects, findings, warnings } = convertRegistryV1(files, {
    installNamespace,
    provider,
    acceptOldDefinitions: true,
    ...(isJsonObject(config) && { config: { text: encodeGoJson(config), file: 'spec.config.inline' } }),
  });
  const refusal =
    bundle &&
    (findInstallRefusal(bundle, { provider, gates, installNamespace, config }) ?? findObjectRefusal(objects));
  if (bundle === undefined || refusal !== undefined || findings.length > 0) {
    return { secrets: [], ...(refusal !== undefined && { refusal }), findings, warnings };
  }
  const deadline = getValue(extension, 'spec', 'progressDeadlineMinutes');
  const properties = bundle.csv.metadata.annotations?.[propertiesAnnotation];
  const set = createObjectSet(objects, {
    owner: {
      name: getText(extension, 'metadata', 'name'),
      uid: getText(extension, 'metadata', 'uid'),
      ...(typeof deadline === 'number' && { progressDeadlineMinutes: deadline }),
    },
    bundle: { ...resolved, properties },
    revision,
  });
  const created = pack === undefined ? { set: encodeObjectSet(set), secrets: [] } : packObjectSet(set, pack);
  return { ...created, findings, warnings };
}

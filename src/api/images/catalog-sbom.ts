import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Catalog, MetasOptions } from '../../catalog/catalog.js';
import { decodeMeta } from '../../catalog/blob.js';
import { locate } from '../../catalog/locate.js';
import type { Meta } from '../../catalog/meta.js';
import { throwIfCancelled } from '../../core/errors.js';
import { type RegistryReference, checkPullSpec, parseReference } from '../../core/reference.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { getImages } from '../../mirror/catalog-images.js';
import { describeBundle } from '../../model/describe.js';
import type { Artifact } from '../../oci/signatures/attach-artifact.js';

/** Media type of an SPDX document in JSON, as registered with IANA. */
const spdxType = 'application/spdx+json';

/** Facts of a catalog image that are not in its catalog. */
interface SbomSubject {
  /** `REGISTRY/NAME:TAG`; undefined for an image without a name. */
  name: string | undefined;
  /** Of the index or manifest that the SBOM is about. */
  digest: string;
  /** RFC 3339, as the image has it. */
  created: string;
  /** Base images, one per platform: name of the repository, and digest. */
  bases: readonly { name: string; digest: string }[];
  /** Version of opmate. */
  version: string;
}

interface SpdxPackage {
  SPDXID: string;
  name: string;
  versionInfo?: string | undefined;
  primaryPackagePurpose?: string;
  sourceInfo?: string;
  externalRefs?: object[] | undefined;
}

type Relationship = [from: string, type: string, to: string];

/** Packages and relationships of one blob. */
interface Part {
  packages: SpdxPackage[];
  relationships: Relationship[];
}

const document = 'SPDXRef-DOCUMENT';
const root = 'SPDXRef-Image';

/**
 * Writes the SBOM of a catalog image to a new file, as SPDX 2.3 in JSON: the image CONTAINS the packages of the catalog,
 * these their bundles, and a bundle DEPENDS_ON the images that it names. Images pinned by digest have a package URL
 * (`pkg:oci`). The bytes depend on catalog and subject alone.
 *
 * The catalog is read twice and never held; what is kept is an identifier of 32 characters for each package, bundle and
 * image. Throws what reading the catalog throws, with file and line.
 */
export async function writeCatalogSbom(
  catalog: Catalog,
  subject: SbomSubject,
  file: string,
  options: MetasOptions = {},
): Promise<Artifact> {
  const hash = createHash('sha256');
  let size = 0;
  async function* counted(): AsyncGenerator<Buffer> {
    let pending = '';
    for await (const text of sbomText(catalog, subject, options)) {
      pending += text;
      if (pending.length < 64 * 1024) continue;
      yield count(pending);
      pending = '';
    }
    yield count(pending);
  }
  const count = (text: string): Buffer => {
    const bytes = Buffer.from(text);
    hash.update(bytes);
    size += bytes.length;
    return bytes;
  };
  await writeNewFile(file, counted());
  const descriptor = { mediaType: spdxType, digest: `sha256:${hash.digest('hex')}`, size };
  return { descriptor, open: () => createReadStream(file), created: subject.created };
}

async function* sbomText(
  catalog: Catalog,
  subject: SbomSubject,
  options: MetasOptions,
): AsyncGenerator<string> {
  const { name = 'catalog', digest, created, version } = subject;
  const head = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: document,
    name,
    documentNamespace: `https://spdx.org/spdxdocs/${encodeURIComponent(name)}-${digest.replace(':', '-')}`,
    creationInfo: {
      // SPDX knows whole seconds in UTC alone.
      created: new Date(created).toISOString().replace(/\.\d+Z$/, 'Z'),
      creators: [`Tool: opmate-${version}`],
    },
  };
  yield `${JSON.stringify(head).slice(0, -1)},\n"packages":[\n`;
  const seen = new Set<string>();
  let isFirst = true;
  for await (const { packages } of readParts(catalog, subject, options)) {
    for (const spdxPackage of packages) {
      if (seen.has(spdxPackage.SPDXID)) continue;
      seen.add(spdxPackage.SPDXID);
      const whole = { ...spdxPackage, downloadLocation: 'NOASSERTION', filesAnalyzed: false };
      yield (isFirst ? '' : ',\n') + JSON.stringify(whole);
      isFirst = false;
    }
  }
  yield '],\n"relationships":[\n';
  const contained = new Set<string>();
  isFirst = true;
  for await (const { relationships } of readParts(catalog, subject, { ...options, logger: undefined })) {
    for (const [from, relationshipType, to] of relationships) {
      // Each bundle names the package that the image contains.
      if (from === root && contained.has(to)) continue;
      if (from === root) contained.add(to);
      const whole = { spdxElementId: from, relationshipType, relatedSpdxElement: to };
      yield (isFirst ? '' : ',\n') + JSON.stringify(whole);
      isFirst = false;
    }
  }
  yield ']}\n';
}

async function* readParts(
  catalog: Catalog,
  { name, digest, bases }: SbomSubject,
  options: MetasOptions,
): AsyncGenerator<Part> {
  const image: SpdxPackage = {
    SPDXID: root,
    name: name ?? 'catalog',
    versionInfo: digest,
    primaryPackagePurpose: 'CONTAINER',
    externalRefs: packageUrls(name === undefined ? undefined : registryImage(name), digest),
  };
  yield { packages: [image], relationships: [[document, 'DESCRIBES', root]] };
  for (const base of bases) {
    const spdxPackage = describeBase(base);
    yield { packages: [spdxPackage], relationships: [[root, 'DESCENDANT_OF', spdxPackage.SPDXID]] };
  }
  for await (const meta of catalog.metas({ ...options, withoutManifests: true })) {
    throwIfCancelled(options.signal);
    let part: Part;
    try {
      part = describeMeta(meta);
    } catch (error) {
      throw await locate(catalog, meta.origin, error);
    }
    yield part;
  }
}

function describeMeta(meta: Meta): Part {
  const part: Part = { packages: [], relationships: [] };
  const decoded = decodeMeta(meta);
  const packageName = decoded.kind === 'package' ? decoded.blob.name : meta.package;
  let holder = root;
  const add = (type: string, spdxPackage: SpdxPackage): void => {
    part.packages.push(spdxPackage);
    part.relationships.push([holder, type, spdxPackage.SPDXID]);
  };
  if (packageName !== '') {
    const item = { SPDXID: getId('Package', packageName), name: packageName };
    add('CONTAINS', item);
    holder = item.SPDXID;
  }
  const images = getImages(meta);
  const own = decoded.kind === 'bundle' ? images.find(({ kind }) => kind === 'bundle') : undefined;
  if (decoded.kind === 'bundle') {
    const { name } = decoded.blob;
    const spdxPackage: SpdxPackage = {
      SPDXID: getId('Bundle', `${packageName}\0${name}`),
      name,
      versionInfo: describeBundle(decoded.blob).packageProperties[0]?.version,
      ...(own && { sourceInfo: `image ${own.image}`, externalRefs: packageUrls(registryImage(own.image)) }),
    };
    add('CONTAINS', spdxPackage);
    holder = spdxPackage.SPDXID;
  }
  for (const catalogImage of images)
    if (catalogImage !== own) add('DEPENDS_ON', describeImage(catalogImage.image));
  return part;
}

/** Of a base in a layout the path says nothing to others, and would make other bytes. */
function describeBase({ name, digest }: { name: string; digest: string }): SpdxPackage {
  const text = `${name}@${digest}`;
  if (registryImage(text) !== undefined) return describeImage(text);
  return {
    SPDXID: getId('Image', digest),
    name: 'base image',
    versionInfo: digest,
    primaryPackagePurpose: 'CONTAINER',
  };
}

function describeImage(text: string): SpdxPackage {
  const reference = registryImage(text);
  return {
    SPDXID: getId('Image', text),
    name: reference === undefined ? text : `${reference.registry}/${reference.repository}`,
    versionInfo: reference?.digest ?? reference?.tag,
    primaryPackagePurpose: 'CONTAINER',
    externalRefs: packageUrls(reference),
  };
}

function registryImage(text: string): RegistryReference | undefined {
  if (checkPullSpec(text) !== undefined) return undefined;
  const reference = parseReference(text);
  return reference.transport === 'docker' ? reference : undefined;
}

/** The package URL of an image that is pinned by digest. (Source: purl specification, type `oci`.) */
function packageUrls(
  place: RegistryReference | undefined,
  digest: string | undefined = place?.digest,
): object[] | undefined {
  if (digest === undefined) return undefined;
  const repository = place?.repository ?? 'catalog';
  const name = repository.slice(repository.lastIndexOf('/') + 1);
  const qualifiers = [
    place && `repository_url=${encodeQualifier(`${place.registry}/${place.repository}`)}`,
    place?.tag && `tag=${encodeQualifier(place.tag)}`,
  ].filter(Boolean);
  const query = qualifiers.length === 0 ? '' : `?${qualifiers.join('&')}`;
  const referenceLocator = `pkg:oci/${name}@${encodeURIComponent(digest)}${query}`;
  return [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator }];
}

/** Slashes and colons stay as they are. */
function encodeQualifier(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '/').replaceAll('%3A', ':');
}

/** Identifiers of SPDX have letters, digits, dots and hyphens only, and names may have others. */
function getId(kind: string, name: string): string {
  return `SPDXRef-${kind}-${createHash('sha256').update(name).digest('hex').slice(0, 24)}`;
}

import type { ArchiveLimits } from '../archive/limits.js';
import { readTopFiles } from '../archive/top-files.js';
import type { CancelOptions } from '../core/concurrency.js';
import { inContext } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { openJsonFile } from '../document/document.js';
import { parseYaml } from '../document/yaml.js';
import { getValue } from '../document/json-fields.js';
import type { ImageContents } from '../oci/image/contents.js';
import { parseManifest } from '../oci/image/manifest.js';
import { isAttestation, getSubject } from '../oci/image/platform.js';
import type { Descriptor } from '../oci/image/types.js';
import { isTag } from '../oci/registry/registry-names.js';
import type { Repository } from '../oci/registry/repository.js';
import { retryDamaged } from '../oci/transport/retry-policy.js';
import { type DigestReference, readDigestReference } from './digest-reference.js';

/** A component image of a release. */
export interface ReleaseComponent {
  name: string;
  image: DigestReference;
}

/** Content of a release image. */
interface ReleasePayload {
  /** Version of the release. */
  version: string;
  /** Components by name; several may share an image. */
  components: ReleaseComponent[];
}

interface ReadPayloadOptions extends CancelOptions {
  limits?: ArchiveLimits | undefined;
  /** Boot images (`x86_64`, `s390x`) whose KubeVirt disk is a component; default: none. */
  kubeVirt?: readonly string[] | undefined;
}

const directory = 'release-manifests';
const referencesFile = 'image-references';
const bootImagesFile = '0000_50_installer_coreos-bootimages.yaml';
const maxFileBytes = 16 * 1024 * 1024;
const maxComponents = 10_000;

/**
 * Reads the components of a release from its image with known manifests. Reads layers from the top until all files
 * are found, of an index those of the first image. Throws OpmateError for a payload without
 * `release-manifests/image-references`, for an image without a digest, and as reading layers. (Source: oc adm
 * release; oc-mirror v2.)
 */
export async function readPayload(
  repository: Repository,
  contents: ImageContents,
  options: ReadPayloadOptions,
): Promise<ReleasePayload> {
  const label = getSubject(repository.name, contents.root.digest);
  const layers = getLayers(contents, label).map((layer) => ({
    label: `layer ${layer.digest}`,
    open: () => repository.openBlob(layer, options),
  }));
  const { kubeVirt = [] } = options;
  const names = kubeVirt.length > 0 ? [referencesFile, bootImagesFile] : [referencesFile];
  const files = await retryDamaged(
    () => readTopFiles(layers, { ...options, directory, names, maxFileBytes }),
    options,
  );
  const references = files.get(referencesFile);
  if (references === undefined) {
    throw new OpmateError('INVALID', `not a release image: ${directory}/${referencesFile} not found`, {
      subject: label,
    });
  }
  return inContext({ subject: label }, () => {
    const payload = parseImageReferences(references.toString(), `${directory}/${referencesFile}`);
    const disks = kubeVirt.length > 0 ? readKubeVirt(files.get(bootImagesFile), kubeVirt) : [];
    return { ...payload, components: [...payload.components, ...disks] };
  });
}

/** Returns the layers of the first image, top first. */
function getLayers({ root, manifests }: ImageContents, label: string): Descriptor[] {
  const byDigest = new Map(manifests.map((manifest) => [manifest.descriptor.digest, manifest]));
  let digest: string | undefined = root.digest;
  // An index lists earlier content only, so this ends.
  while (digest !== undefined) {
    const manifest = byDigest.get(digest);
    if (manifest?.bytes === undefined) break;
    const { mediaType } = manifest.descriptor;
    const parsed = parseManifest(manifest.bytes, { subject: label, mediaType });
    if (parsed.kind === 'image') return [...parsed.manifest.layers].reverse();
    const listed = parsed.index.manifests.filter(
      (descriptor) => !isAttestation(descriptor) && byDigest.has(descriptor.digest),
    );
    const images = listed.filter((descriptor) => byDigest.get(descriptor.digest)?.manifests.length === 0);
    digest = (images[0] ?? listed[0])?.digest;
  }
  throw new OpmateError('INVALID', 'not a release image: no image for any platform', { subject: label });
}

/** Reads an ImageStream. Throws OpmateError that starts with `file`. */
function parseImageReferences(text: string, file: string): ReleasePayload {
  const top = openJsonFile(text, file, 'reference');
  const fields = top.object(['kind', 'metadata', 'spec'], { unknown: 'ignore' });
  fields.kind.constant('ImageStream');
  const version = fields.metadata.field('name').text();
  const components = new Map<string, ReleaseComponent>();
  for (const tag of fields.spec.field('tags').list(maxComponents)) {
    const { name: named, from } = tag.object(['name', 'from'], { unknown: 'ignore' });
    const name = named.matching(isTag, 'the name of a component');
    const image = readDigestReference(from.field('name'));
    const other = components.get(name);
    if (other !== undefined && other.image.digest !== image.digest)
      return named.fail(`duplicate component ${name} with another image`, { code: 'duplicate' });
    components.set(name, { name, image });
  }
  if (components.size === 0) return fields.spec.fail('no components');
  return { version, components: [...components.values()] };
}

/** Returns the KubeVirt disks of the boot images. Throws OpmateError if the release has none. */
function readKubeVirt(file: Buffer | undefined, keys: readonly string[]): ReleaseComponent[] {
  const name = `${directory}/${bootImagesFile}`;
  if (file === undefined) throw noKubeVirt(`${name} not found`);
  const value = parseYaml(file.toString());
  const text = getValue(value, 'data', 'stream');
  if (typeof text !== 'string') throw noKubeVirt(`${name} has no data.stream`);
  const architectures = openJsonFile(text, name, 'reference').field('architectures');
  const disks = keys.flatMap((key) => {
    const disk = architectures.field(key).field('images').field('kubevirt').field('digest-ref');
    const suffix = keys.length > 1 ? `-${key}` : '';
    return disk.isSet ? [{ name: `kube-virt-container${suffix}`, image: readDigestReference(disk) }] : [];
  });
  if (disks.length === 0) throw noKubeVirt(`${name} has none for ${keys.join(', ')}`);
  return disks;
}

function noKubeVirt(problem: string): OpmateError {
  return new OpmateError('NOT_FOUND', `no KubeVirt disk image: ${problem}`, {
    hint: 'remove kubeVirtContainer',
  });
}

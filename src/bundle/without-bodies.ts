import { encodeGoJson } from '../document/go-json.js';
import { isCsv } from '../model/csv.js';
import { readFirstDocument } from './manifest.js';
import { isKubernetesObject } from './parse.js';
import type { BundleFile, BundleFiles } from './read.js';

/** Bytes of manifests up to which a bundle stays as it is. */
const maxKept = 32 * 1024 * 1024;
const smallFile = 64 * 1024;

/**
 * A bundle for readers that keep every object of it in memory, and of most of them need the kind and metadata alone:
 * where it is large, large objects that are neither ClusterServiceVersions nor definitions are cut down to these.
 * Lines within them are lost.
 */
export function withoutBodies(files: BundleFiles): BundleFiles {
  const size = files.manifests.reduce((sum, { content }) => sum + content.length, 0);
  return size <= maxKept ? files : { ...files, manifests: files.manifests.map(withoutBody) };
}

function withoutBody(file: BundleFile): BundleFile {
  if (file.content.length <= smallFile) return file;
  const { value = null } = readFirstDocument(file.content);
  if (!isKubernetesObject(value) || isCsv(value) || value['kind'] === 'CustomResourceDefinition') return file;
  const { apiVersion = null, kind = null, metadata = null } = value;
  return { name: file.name, content: Buffer.from(encodeGoJson({ apiVersion, kind, metadata })) };
}

import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { bundleKeys } from './bundle-keys.js';

/** Labels of catalog and bundle images that describe their content. */
export const imageLabels = {
  configs: 'operators.operatorframework.io.index.configs.v1',
  database: 'operators.operatorframework.io.index.database.v1',
  bundlePackage: bundleKeys.package,
  bundleManifests: bundleKeys.manifests,
  bundleMetadata: bundleKeys.metadata,
} as const;

/**
 * Returns the path in a label, without leading and trailing slashes. Throws OpmateError UNSAFE for a path outside of the
 * image.
 */
export function getLabelPath(reference: string, name: string, label: string): string {
  const parts = label.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || label.includes('\0')) {
    throw new OpmateError('UNSAFE', `label ${name} names ${quoteGo(label)}, a path outside the image`, {
      subject: reference,
      hint: 'set the label to an absolute path inside the image, such as /configs',
    });
  }
  return parts.join('/');
}

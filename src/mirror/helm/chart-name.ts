import { OpmateError } from '../../core/errors.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';
import type { ImageName } from '../image-set/image-set-names.js';
import type { OpenedChart } from './open-charts.js';

/** Path of all charts below a target. */
const root = 'helm';

/**
 * Returns the name of a chart's artifact: `helm/REPOSITORY/CHART:VERSION`, of a local one `helm/local/CHART:VERSION`,
 * with `_` for `+` as Helm writes it. Two charts of one name and version with other content are told apart by digest;
 * `known` keeps the digests of the names that were returned. Throws OpmateError for a chart that no artifact can name.
 */
export function chartName(
  { label, repository = 'local', packed }: Pick<OpenedChart, 'label' | 'repository' | 'packed'>,
  known: Map<string, string>,
): ImageName {
  const part =
    repository
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'repository';
  const tag = packed.version.replaceAll('+', '_');
  const hex = packed.digest.slice('sha256:'.length, 'sha256:'.length + 12);
  for (const place of [part, `${part}/${hex}`]) {
    const name = `${root}/${place}/${packed.name}`;
    if (!isRepositoryName(name) || !isTag(tag)) {
      const problem = `name ${packed.name} and version ${packed.version} cannot be those of an artifact`;
      throw new OpmateError('INVALID', `${label}: ${problem}`);
    }
    const other = known.get(`${name}:${tag}`);
    if (other !== undefined && other !== packed.digest) continue;
    known.set(`${name}:${tag}`, packed.digest);
    return { repository: name, tag };
  }
  throw new OpmateError('INTERNAL', `${label}: no name for its artifact`);
}

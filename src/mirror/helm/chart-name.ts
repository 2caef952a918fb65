import { OpmateError } from '../../core/errors.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';
import type { TargetName } from '../naming/image-name.js';
import type { OpenedChart } from './open-charts.js';

/** Path of charts below a target. */
const root = 'helm';

/**
 * Returns the name of a chart's artifact: `helm/REPOSITORY/CHART:VERSION`, of a local chart `helm/local/CHART:VERSION`,
 * with `_` for `+` as in Helm. Different charts with one name and version are distinguished by digest; `known` maps
 * returned names to digests. Throws OpmateError for a chart without a valid name.
 */
export function nameChart(
  { label, repository = 'local', packed }: Pick<OpenedChart, 'label' | 'repository' | 'packed'>,
  known: Map<string, string>,
): TargetName {
  const part =
    repository
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'repository';
  const tag = packed.version.replaceAll('+', '_');
  const hex = packed.digest.slice('sha256:'.length, 'sha256:'.length + 12);
  for (const path of [part, `${part}/${hex}`]) {
    const name = `${root}/${path}/${packed.name}`;
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

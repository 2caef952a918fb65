import type { BundleDetails, BundlePermission } from '../../responses.js';
import { Badge, Fold, Part, TableHead, formatCount } from '../parts.js';

/** Permissions of the service accounts of a bundle, if the catalog contains its manifests. */
export function Permissions({ bundle: { permissions, image, deployments } }: { bundle: BundleDetails }) {
  if (permissions === undefined) {
    return (
      <Part title="Permissions">
        <p class="quiet-text">
          The catalog does not contain the manifests of this bundle.
          {image !== '' && (
            <>
              {' '}
              <code>opmate bundle permissions</code> reads them from its image.
            </>
          )}
        </p>
      </Part>
    );
  }
  const groups = [
    { title: 'Cluster-wide', rules: permissions.filter(({ isClusterWide }) => isClusterWide) },
    { title: 'In its namespaces', rules: permissions.filter(({ isClusterWide }) => !isClusterWide) },
  ];
  return (
    <Part title="Permissions" amount={permissions.length}>
      {deployments.length > 0 && <p class="quiet-text">Deployments: {deployments.join(', ')}</p>}
      {groups
        .filter(({ rules }) => rules.length > 0)
        .map(({ title, rules }) => (
          <Fold
            key={title}
            title={title}
            amount={formatCount(rules.length, 'rule')}
            badge={rules.some(isBroad) && <Badge kind="warning">with wildcards</Badge>}
          >
            <div class="table-box" tabIndex={0} role="region" aria-label={title}>
              <table>
                <TableHead columns={['Account', 'Group', 'Resources', 'Verbs']} />
                <tbody>
                  {rules.map((rule, index) => (
                    <tr key={index} class={isBroad(rule) ? 'broad' : undefined}>
                      <td>{rule.account}</td>
                      <td>{rule.groups.map((group) => group || 'core').join(', ')}</td>
                      <td>
                        {[...rule.resources, ...rule.urls].join(', ')}
                        {rule.names.length > 0 && <span class="id"> only {rule.names.join(', ')}</span>}
                      </td>
                      <td>{rule.verbs.join(', ')}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Fold>
        ))}
    </Part>
  );
}

function isBroad({ groups, resources, verbs }: BundlePermission): boolean {
  return [groups, resources, verbs].some((list) => list.includes('*'));
}

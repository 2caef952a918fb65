import { useState } from 'preact/hooks';
import type { CatalogOverview, SelectionSummary, SelectionRequest, SelectionPick } from '../../responses.js';
import { Missing, PageHeading, formatCount } from '../parts.js';
import { type EditRoute, go } from '../route.js';
import { formatPick, parseDefaults, parsePicks, replacePicks } from './picks.js';
import { usePosted } from './post.js';
import { PackageSuggestions, PickedPackage } from './package-choice.js';
import { Result } from './edit-result.js';

/** Form for a selection of packages, channels and versions, with its result, to be written to a file. */
export function EditView({ catalog, route }: { catalog: CatalogOverview; route: EditRoute }) {
  const picks = parsePicks(route.picks);
  const image = route.catalog || catalog.edit?.catalog || '';
  // An image set needs an image; other catalogs can only be filtered.
  const kind =
    route.kind === 'filter' || route.kind === 'imageset' ? route.kind : image === '' ? 'filter' : 'imageset';
  const defaultChannels = parseDefaults(route.defaults);
  const isExact = kind === 'filter' && route.exact === 'yes';
  const request: SelectionRequest = { kind, catalog: image, picks, defaultChannels, isExact };
  // Each write changes the file, or reports a conflict: plan again.
  const [writes, setWrites] = useState(0);
  const plan = usePosted<SelectionSummary>(
    'api/edit/plan',
    catalog.edit === undefined ? undefined : request,
    writes,
  );
  if (catalog.edit === undefined) {
    return (
      <Missing error="This page shows the catalog only: run opmate view --edit to select a part of it" />
    );
  }
  const change = (next: Partial<EditRoute>): void => go({ ...route, ...next }, 'replace');
  const setPicks = (next: SelectionPick[]): void => change({ picks: next.map(formatPick) });
  const setDefault = (name: string, channel: string): void => {
    const others = defaultChannels.filter((choice) => choice.package !== name);
    const next = channel === '' ? others : [...others, { package: name, channel }];
    change({ defaults: next.map(formatPick) });
  };
  const names = [...new Set(picks.map((pick) => pick.package))];
  return (
    <>
      <div class="heading">
        <PageHeading title="Selection" />
        <p class="sums" role="status">
          {plan.value === undefined
            ? ''
            : [
                formatCount(plan.value.packages.length, 'package'),
                formatCount(plan.value.bundles, 'bundle'),
                formatCount(plan.value.images, 'image'),
              ].join(' · ')}
        </p>
        <label class="filter">
          Write{' '}
          <select value={kind} onChange={(event) => change({ kind: event.currentTarget.value })}>
            <option value="imageset">ImageSetConfiguration</option>
            <option value="filter">CatalogFilter</option>
          </select>
        </label>
        {kind === 'filter' && (
          <label class="filter">
            <input
              type="checkbox"
              checked={isExact}
              onChange={(event) => change({ exact: event.currentTarget.checked ? 'yes' : '' })}
            />{' '}
            Only the selected bundles
          </label>
        )}
        {kind === 'imageset' && (
          <label class="filter">
            Catalog image{' '}
            <input
              type="text"
              class="image-name"
              value={image}
              maxLength={500}
              spellcheck={false}
              onChange={(event) => change({ catalog: event.currentTarget.value.trim() })}
            />
          </label>
        )}
      </div>
      <div class="workbench">
        <section aria-label="Packages" class="graph-side picks">
          <PackageSuggestions
            catalog={catalog}
            selected={names}
            onAdd={(name) => setPicks([...picks, { package: name }])}
          />
          {names.map((name) => (
            <PickedPackage
              key={name}
              name={name}
              kind={kind}
              picks={picks.filter((pick) => pick.package === name)}
              defaultChannel={defaultChannels.find((choice) => choice.package === name)?.channel ?? ''}
              onChange={(next) => setPicks(replacePicks(picks, name, next))}
              onDefault={(channel) => setDefault(name, channel)}
            />
          ))}
        </section>
        <section aria-label="Result" class="details-side">
          <div class="panel">
            {plan.error !== undefined && !plan.isPending && (
              <p class="note error" role="alert">
                {plan.error}
              </p>
            )}
            {plan.value !== undefined && (
              <Result
                plan={plan.value}
                request={request}
                file={catalog.edit.file}
                canWrite={
                  plan.error === undefined &&
                  !plan.isPending &&
                  names.length > 0 &&
                  (kind === 'filter' || image !== '')
                }
                onAdd={(name) => setPicks([...picks, { package: name }])}
                onWrite={() => setWrites(writes + 1)}
              />
            )}
          </div>
        </section>
      </div>
    </>
  );
}

import { useState } from 'preact/hooks';
import type { CatalogOverview, SelectionSummary, SelectionRequest } from '../../responses.js';
import { Missing, PageHeading, formatCount } from '../parts.js';
import { type EditRoute, go } from '../route.js';
import { formatPick, parseDefaults, parsePicks, replacePicks } from './picks.js';
import { usePosted } from './post.js';
import { PackageSuggestions, PickedPackage } from './package-choice.js';
import { Result } from './edit-result.js';

/** Form for a selection of packages, channels and versions, with its result, to be written to a file. */
export function EditView({ catalog, route }: { catalog: CatalogOverview; route: EditRoute }) {
  const selection = readSelection(catalog, route);
  // Each write changes the file, or reports a conflict: plan again.
  const [writes, setWrites] = useState(0);
  const plan = usePosted<SelectionSummary>(
    'api/edit/plan',
    catalog.edit === undefined ? undefined : selection,
    writes,
  );
  if (catalog.edit === undefined) {
    return (
      <Missing error="This page shows the catalog only: run opmate view --edit to select a part of it" />
    );
  }
  const { kind, picks } = selection;
  const change = (next: Partial<EditRoute>): void => go({ ...route, ...next }, 'replace');
  const addPackage = (name: string): void => change({ picks: [...picks, { package: name }].map(formatPick) });
  const hasSource = kind === 'filter' || selection.catalog !== '';
  return (
    <>
      <SelectionHeading plan={plan.value} selection={selection} onChange={change} />
      <div class="workbench">
        <Picks catalog={catalog} selection={selection} onAdd={addPackage} onChange={change} />
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
                request={selection}
                file={catalog.edit.file}
                canWrite={plan.error === undefined && !plan.isPending && picks.length > 0 && hasSource}
                onAdd={addPackage}
                onWrite={() => setWrites(writes + 1)}
              />
            )}
          </div>
        </section>
      </div>
    </>
  );
}

/** Returns the selection that a route describes. */
function readSelection(catalog: CatalogOverview, route: EditRoute): SelectionRequest {
  const image = route.catalog || catalog.edit?.catalog || '';
  // An image set needs an image; other catalogs can only be filtered.
  const kind =
    route.kind === 'filter' || route.kind === 'imageset' ? route.kind : image === '' ? 'filter' : 'imageset';
  return {
    kind,
    catalog: image,
    picks: parsePicks(route.picks),
    defaultChannels: parseDefaults(route.defaults),
    isExact: kind === 'filter' && route.exact === 'yes',
  };
}

/** Sums of the selection, and the document that it is written as. */
function SelectionHeading(props: {
  plan: SelectionSummary | undefined;
  selection: SelectionRequest;
  onChange: (next: Partial<EditRoute>) => void;
}) {
  const { plan, selection, onChange } = props;
  const { kind, catalog, isExact } = selection;
  return (
    <div class="heading">
      <PageHeading title="Selection" />
      <p class="sums" role="status">
        {plan !== undefined &&
          [
            formatCount(plan.packages.length, 'package'),
            formatCount(plan.bundles, 'bundle'),
            formatCount(plan.images, 'image'),
          ].join(' · ')}
      </p>
      <label class="filter">
        Write{' '}
        <select value={kind} onChange={(event) => onChange({ kind: event.currentTarget.value })}>
          <option value="imageset">ImageSetConfiguration</option>
          <option value="filter">CatalogFilter</option>
        </select>
      </label>
      {kind === 'filter' && (
        <label class="filter">
          <input
            type="checkbox"
            checked={isExact}
            onChange={(event) => onChange({ exact: event.currentTarget.checked ? 'yes' : '' })}
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
            value={catalog}
            maxLength={500}
            spellcheck={false}
            onChange={(event) => onChange({ catalog: event.currentTarget.value.trim() })}
          />
        </label>
      )}
    </div>
  );
}

/** Packages to add, and the form of each selected one. */
function Picks(props: {
  catalog: CatalogOverview;
  selection: SelectionRequest;
  onAdd: (name: string) => void;
  onChange: (next: Partial<EditRoute>) => void;
}) {
  const { catalog, selection, onAdd, onChange } = props;
  const { kind, picks, defaultChannels = [] } = selection;
  const names = [...new Set(picks.map((pick) => pick.package))];
  const setDefault = (name: string, channel: string): void => {
    const others = defaultChannels.filter((choice) => choice.package !== name);
    const next = channel === '' ? others : [...others, { package: name, channel }];
    onChange({ defaults: next.map(formatPick) });
  };
  return (
    <section aria-label="Packages" class="graph-side picks">
      <PackageSuggestions catalog={catalog} selected={names} onAdd={onAdd} />
      {names.map((name) => (
        <PickedPackage
          key={name}
          name={name}
          kind={kind}
          picks={picks.filter((pick) => pick.package === name)}
          defaultChannel={defaultChannels.find((choice) => choice.package === name)?.channel ?? ''}
          onChange={(next) => onChange({ picks: replacePicks(picks, name, next).map(formatPick) })}
          onDefault={(channel) => setDefault(name, channel)}
        />
      ))}
    </section>
  );
}

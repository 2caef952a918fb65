import { useMemo, useState } from 'preact/hooks';
import type { CatalogOverview, SelectionImages } from '../responses.js';
import type { SearchIndex } from '../search.js';
import { useResponse } from './requests.js';
import { useFoundPackages } from './packages-view.js';
import { Choice, ImageButtons, MoreButton, PageHeading, Waiting, formatCount } from './parts.js';
import { type ImagesRoute, getUrl, getPackageUrl, go } from './route.js';

/** Images that are shown at first. */
const firstImages = 200;

/** Images of a package, or of the packages that match the search and the filters. */
export function ImagesView({ catalog, route }: { catalog: CatalogOverview; route: ImagesRoute }) {
  const { value, error } = useResponse<SearchIndex>('api/index');
  const { package: name, scope } = route;
  const matches = useFoundPackages(catalog, route);
  const images = useMemo(() => {
    if (value === undefined) return [];
    const heads = new Map(
      catalog.packages.map((packageSummary) => [packageSummary.name, packageSummary.head]),
    );
    const chosen = new Set(name === '' ? matches.map((item) => item.package.name) : [name]);
    return getImages(value, chosen, scope === 'all' ? undefined : heads);
  }, [value, catalog, name, matches, scope]);
  if (value === undefined) return <Waiting error={error} />;
  return (
    <>
      <div class="heading">
        <PageHeading title="Images">
          Images of{' '}
          {name === '' ? (
            <a href={getUrl({ ...route, view: 'packages' })}>{formatCount(matches.length, 'package')}</a>
          ) : (
            <a href={getPackageUrl(name)}>{name}</a>
          )}
        </PageHeading>
        <p class="sums" role="status">
          {formatCount(images.length, 'image')}
        </p>
        <Choice
          label="Of"
          all="heads of default channels"
          options={[{ value: 'all', label: 'all bundles' }]}
          value={scope}
          onChange={(value) => go({ ...route, view: 'images', scope: value }, 'replace')}
        />
        <span class="saves">
          <ImageButtons file={`${name || 'catalog'}-images`} list={() => images} />
        </span>
      </div>
      {images.length === 0 && <p class="note">No images.</p>}
      <ImageRows images={images} />
    </>
  );
}

/** Images with the bundles that need them; the first ones at first. */
function ImageRows({ images }: { images: SelectionImages['images'] }) {
  const [limit, setLimit] = useState(firstImages);
  return (
    <>
      <ul class="rows">
        {images.slice(0, limit).map(({ image, bundles }) => (
          <li key={image}>
            <code class="image">{image}</code>
            <small>
              {bundles.length === 1 && bundles[0] !== undefined ? (
                <a href={getPackageUrl(bundles[0].package, '', bundles[0].bundle)}>
                  <bdi>{bundles[0].bundle}</bdi>
                </a>
              ) : (
                formatCount(bundles.length, 'bundle')
              )}
            </small>
          </li>
        ))}
      </ul>
      {images.length > limit && (
        <MoreButton shown={limit} total={images.length} onClick={() => setLimit(limit * 5)} />
      )}
    </>
  );
}

/** Returns the images of packages, sorted; with `heads`, only those of the heads. */
function getImages(
  { packages, images }: SearchIndex,
  chosen: ReadonlySet<string>,
  heads: ReadonlyMap<string, string> | undefined,
): SelectionImages['images'] {
  const selected = new Map<number, SelectionImages['images'][number]>();
  for (const { name, bundles } of packages) {
    if (!chosen.has(name)) continue;
    for (const bundle of bundles) {
      if (heads !== undefined && heads.get(name) !== bundle.name) continue;
      for (const index of bundle.images) {
        const image = images[index];
        if (image === undefined) continue;
        const item = selected.get(index) ?? { image, bundles: [] };
        item.bundles.push({ package: name, bundle: bundle.name });
        selected.set(index, item);
      }
    }
  }
  return [...selected.values()].sort((a, b) => (a.image < b.image ? -1 : 1));
}

import { useMemo, useState } from 'preact/hooks';
import type { CatalogOverview } from '../answers.js';
import type { SearchIndex } from '../search.js';
import { useAnswer } from './requests.js';
import { useFoundPackages } from './packages-view.js';
import { CopyButton, PageHeading, SaveButton, Waiting, count } from './parts.js';
import { type ImagesRoute, getAddress, addressOfPackage, go } from './route.js';

/** Images that are shown before one asks for more. */
const firstImages = 200;

/** An image and the bundles that are it or need it. */
interface NeededImage {
  image: string;
  bundles: { package: string; bundle: string }[];
}

/** The images of a package, or of the packages that a search and filters have found. */
export function ImagesView({ catalog, route }: { catalog: CatalogOverview; route: ImagesRoute }) {
  const { value, error } = useAnswer<SearchIndex>('api/index');
  const { package: name, scope } = route;
  const matches = useFoundPackages(catalog, route);
  const [limit, setLimit] = useState(firstImages);
  const images = useMemo(() => {
    if (value === undefined) return [];
    const heads = new Map(
      catalog.packages.map((packageSummary) => [packageSummary.name, packageSummary.head]),
    );
    const chosen = new Set(name === '' ? matches.map((item) => item.package.name) : [name]);
    return getImages(value, chosen, scope === 'all' ? undefined : heads);
  }, [value, catalog, name, matches, scope]);
  if (value === undefined) return <Waiting error={error} />;
  const file = name || 'catalog';
  return (
    <>
      <div class="heading">
        <PageHeading title="Images">
          Images of{' '}
          {name === '' ? (
            <a href={getAddress({ ...route, view: 'packages' })}>{count(matches.length, 'package')}</a>
          ) : (
            <a href={addressOfPackage(name)}>{name}</a>
          )}
        </PageHeading>
        <p class="sums" role="status">
          {count(images.length, 'image')}
        </p>
        <label class="filter">
          Of{' '}
          <select
            value={scope}
            onChange={(event) =>
              go({ ...route, view: 'images', scope: event.currentTarget.value }, 'replace')
            }
          >
            <option value="">heads of default channels</option>
            <option value="all">all bundles</option>
          </select>
        </label>
        <span class="saves">
          <CopyButton label="Copy all" name="Copy all images" text={() => formatLines(images)} />
          <SaveButton
            label="Save text"
            file={`${file}-images.txt`}
            type="text/plain"
            text={() => formatLines(images)}
          />
          <SaveButton
            label="Save JSON"
            file={`${file}-images.json`}
            type="application/json"
            text={() => `${JSON.stringify({ images }, null, 2)}\n`}
          />
        </span>
      </div>
      {images.length === 0 && <p class="note">No images.</p>}
      <ul class="rows">
        {images.slice(0, limit).map(({ image, bundles }) => (
          <li key={image}>
            <code class="image">{image}</code>
            <small>
              {bundles.length === 1 && bundles[0] !== undefined ? (
                <a href={addressOfPackage(bundles[0].package, '', bundles[0].bundle)}>
                  <bdi>{bundles[0].bundle}</bdi>
                </a>
              ) : (
                count(bundles.length, 'bundle')
              )}
            </small>
          </li>
        ))}
      </ul>
      {images.length > limit && (
        <button type="button" class="more" onClick={() => setLimit(limit * 5)}>
          Show more ({limit.toLocaleString('en')} of {images.length.toLocaleString('en')})
        </button>
      )}
    </>
  );
}

/** The images of packages, sorted; with `heads`, only those of one bundle each. */
function getImages(
  { packages, images }: SearchIndex,
  chosen: ReadonlySet<string>,
  heads: ReadonlyMap<string, string> | undefined,
): NeededImage[] {
  const needed = new Map<number, NeededImage>();
  for (const { name, bundles } of packages) {
    if (!chosen.has(name)) continue;
    for (const bundle of bundles) {
      if (heads !== undefined && heads.get(name) !== bundle.name) continue;
      for (const place of bundle.images) {
        const image = images[place];
        if (image === undefined) continue;
        const neededImage = needed.get(place) ?? { image, bundles: [] };
        neededImage.bundles.push({ package: name, bundle: bundle.name });
        needed.set(place, neededImage);
      }
    }
  }
  return [...needed.values()].sort((a, b) => (a.image < b.image ? -1 : 1));
}

function formatLines(images: readonly NeededImage[]): string {
  return images.map(({ image }) => `${image}\n`).join('');
}

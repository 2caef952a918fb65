import { useMemo, useState } from 'preact/hooks';
import type { CatalogAnswer } from '../answers.js';
import type { SearchIndex } from '../search.js';
import { useAnswer } from './ask.js';
import { useFoundPackages } from './packages-view.js';
import { CopyButton, PageHeading, SaveButton, Waiting, count } from './parts.js';
import { type ImagesRoute, addressOf, addressOfPackage, go } from './route.js';

/** Images that are shown before one asks for more. */
const firstImages = 200;

/** An image and the bundles that are it or need it. */
interface NeededImage {
  image: string;
  bundles: { package: string; bundle: string }[];
}

/** The images of a package, or of the packages that a search and filters have found. */
export function ImagesView({ catalog, route }: { catalog: CatalogAnswer; route: ImagesRoute }) {
  const { value, error } = useAnswer<SearchIndex>('api/index');
  const { package: name, scope } = route;
  const found = useFoundPackages(catalog, route);
  const [limit, setLimit] = useState(firstImages);
  const images = useMemo(() => {
    if (value === undefined) return [];
    const heads = new Map(catalog.packages.map((one) => [one.name, one.head]));
    const chosen = new Set(name === '' ? found.map((one) => one.package.name) : [name]);
    return imagesOf(value, chosen, scope === 'all' ? undefined : heads);
  }, [value, catalog, name, found, scope]);
  if (value === undefined) return <Waiting error={error} />;
  const file = name || 'catalog';
  return (
    <>
      <div class="heading">
        <PageHeading title="Images">
          Images of{' '}
          {name === '' ? (
            <a href={addressOf({ ...route, view: 'packages' })}>{count(found.length, 'package')}</a>
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
          <CopyButton label="Copy all" name="Copy all images" text={() => linesOf(images)} />
          <SaveButton
            label="Save text"
            file={`${file}-images.txt`}
            type="text/plain"
            text={() => linesOf(images)}
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
              {bundles.length === 1 ? <bdi>{bundles[0]?.bundle}</bdi> : count(bundles.length, 'bundle')}
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
function imagesOf(
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
        const one = needed.get(place) ?? { image, bundles: [] };
        one.bundles.push({ package: name, bundle: bundle.name });
        needed.set(place, one);
      }
    }
  }
  return [...needed.values()].sort((a, b) => (a.image < b.image ? -1 : 1));
}

function linesOf(images: readonly NeededImage[]): string {
  return images.map(({ image }) => `${image}\n`).join('');
}

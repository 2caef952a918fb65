import { useEffect, useRef, useState } from 'preact/hooks';
import type { BundleApi, BundleDetails, BundlePlace, LifecycleSupport } from '../../responses.js';
import { SupportLine } from './lifecycle.js';
import { CopyButton, Copyable, Fold, Item, Part, ProblemList, SaveButton, formatCount } from '../parts.js';
import { getPackageUrl } from '../route.js';
import { About } from './bundle-about.js';
import { Permissions } from './bundle-permissions.js';

/** Names that are shown at first. */
const firstNames = 8;

/** Details of a bundle. */
export function BundlePanel(props: {
  bundle: BundleDetails;
  channel: string;
  lifecycle: LifecycleSupport[];
  takesFocus: boolean;
}) {
  const { bundle, channel, lifecycle, takesFocus } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On narrow screens the panel is below the graph: scroll to it.
    if (takesFocus && matchMedia('(width < 60rem)').matches) heading.current?.focus();
  }, []);
  const place = bundle.places.find((bundlePlace) => bundlePlace.channel === channel) ?? bundle.places[0];
  const { deprecation, problems } = bundle;
  const grave = problems.filter(({ severity }) => severity !== 'notice');
  const notices = problems.filter(({ severity }) => severity === 'notice');
  return (
    <div class="panel">
      <h2 ref={heading} tabIndex={-1}>
        {bundle.name}
      </h2>
      <Origin bundle={bundle} />
      <SupportLine lifecycle={lifecycle} version={bundle.version} />
      {bundle.summary !== '' && <p>{bundle.summary}</p>}
      {deprecation !== undefined && (
        <p class="note warning">
          <strong>Deprecated.</strong> <bdi>{deprecation}</bdi>
        </p>
      )}
      {grave.length > 0 && <ProblemList problems={grave} />}
      {bundle.image !== '' && <Copyable text={bundle.image} />}
      {place !== undefined && <Upgrades bundle={bundle} place={place} />}
      <Apis title="Provided APIs" apis={bundle.provided} />
      <Apis title="Required APIs" apis={bundle.required} />
      <Requirements bundle={bundle} />
      <InstallModes bundle={bundle} />
      <Images bundle={bundle} />
      <Permissions bundle={bundle} />
      <About bundle={bundle} />
      {notices.length > 0 && (
        <Fold title="Notices" amount={notices.length}>
          <ProblemList problems={notices} />
        </Fold>
      )}
    </div>
  );
}

/** Version, display name and provider. */
function Origin({ bundle: { version, displayName, provider } }: { bundle: BundleDetails }) {
  return (
    <p class="sums">
      {version !== '' && <span class="version">{version}</span>}
      {displayName !== '' && <span>{displayName}</span>}
      {provider !== '' && (
        <span>
          by <bdi>{provider}</bdi>
        </span>
      )}
    </p>
  );
}

function InstallModes({ bundle: { installModes } }: { bundle: BundleDetails }) {
  if (installModes.length === 0) return null;
  return (
    <Part title="Install modes">
      <ul class="modes">
        {installModes.map(({ type, isSupported }, index) => (
          <li key={index} class={isSupported ? 'yes' : 'no'}>
            <span aria-hidden="true">{isSupported ? '✓' : '✗'}</span> {type}
            <span class="unseen">{isSupported ? ' supported' : ' not supported'}</span>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Upgrades({ bundle, place }: { bundle: BundleDetails; place: BundlePlace }) {
  const { channel, replaces, skips, skipRange, absent, covered, updatesTo, updatesFrom } = place;
  const others = bundle.places.filter((bundlePlace) => bundlePlace !== place);
  const names = (list: string[]) => (
    <Names package={bundle.package} channel={channel} names={list} absent={absent} />
  );
  return (
    <Part title={`Upgrades in ${channel}`}>
      <dl>
        <Item term="Next">{updatesTo.length === 0 ? 'none' : names(updatesTo)}</Item>
        <Item term="From">{updatesFrom.length === 0 ? 'none' : names(updatesFrom)}</Item>
        {replaces !== '' && <Item term="Replaces">{names([replaces])}</Item>}
        {skips.length > 0 && <Item term="Skips">{names(skips)}</Item>}
        {skipRange !== '' && (
          <Item term="Skip range">
            <code>{skipRange}</code>{' '}
            <small>
              {covered.length === 0
                ? 'no bundle of this channel'
                : `${formatCount(covered.length, 'bundle')} of this channel`}
            </small>
          </Item>
        )}
        {others.length > 0 && (
          <Item term="Also in">
            <ul class="names">
              {others.map((bundlePlace) => (
                <li key={bundlePlace.channel}>
                  <a href={getPackageUrl(bundle.package, bundlePlace.channel, bundle.name)}>
                    {bundlePlace.channel}
                  </a>
                </li>
              ))}
            </ul>
          </Item>
        )}
      </dl>
    </Part>
  );
}

function Names(props: { package: string; channel: string; names: string[]; absent: string[] }) {
  const { package: name, channel, names, absent } = props;
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? names : names.slice(0, firstNames);
  return (
    <ul class="names">
      {shown.map((text) => (
        <li key={text}>
          {absent.includes(text) ? (
            <>
              <bdi>{text}</bdi> <small>not in the channel</small>
            </>
          ) : (
            <a href={getPackageUrl(name, channel, text)}>{text}</a>
          )}
        </li>
      ))}
      {names.length > shown.length && (
        <li>
          <button type="button" class="quiet more" onClick={() => setWhole(true)}>
            {names.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Apis({ title, apis }: { title: string; apis: BundleApi[] }) {
  if (apis.length === 0) return null;
  return (
    <Part title={title} amount={apis.length}>
      <ul class="apis">
        {apis.map(({ kind, group, version, displayName, description }, index) => (
          <li key={index}>
            <strong>{kind}</strong>{' '}
            <span class="id">
              <bdi>{group}</bdi>
              {version !== '' && (
                <>
                  /<bdi>{version}</bdi>
                </>
              )}
            </span>
            {displayName !== '' && displayName !== kind && <span> {displayName}</span>}
            {description !== '' && description !== displayName && <p>{description}</p>}
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Requirements({ bundle: { requiredPackages, constraints } }: { bundle: BundleDetails }) {
  if (requiredPackages.length + constraints.length === 0) return null;
  return (
    <Part title="Dependencies">
      <ul class="apis">
        {requiredPackages.map(({ package: name, range }, index) => (
          <li key={index}>
            package <a href={getPackageUrl(name)}>{name}</a> <code>{range}</code>
          </li>
        ))}
        {constraints.map((text, index) => (
          <li key={`c${index}`}>
            <code>{text}</code>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Images({ bundle: { name, image, images } }: { bundle: BundleDetails }) {
  if (images.length === 0) return null;
  const text = (): string => {
    const all = new Set([image, ...images.map((item) => item.image)].filter((item) => item !== ''));
    return [...all].map((item) => `${item}\n`).join('');
  };
  return (
    <Part title="Images" amount={images.length}>
      <p>
        <CopyButton label="Copy all" name="Copy all images of the bundle" text={text} />
        <SaveButton label="Save text" file={`${name}-images.txt`} type="text/plain" text={text} />
      </p>
      <ul class="images">
        {images.map(({ name, image }, index) => (
          <li key={index}>
            {name !== '' && <span class="id">{name}</span>}
            <Copyable text={image} />
          </li>
        ))}
      </ul>
    </Part>
  );
}

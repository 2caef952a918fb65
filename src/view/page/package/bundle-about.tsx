import type { ComponentChildren } from 'preact';
import type { BundleDetails } from '../../responses.js';
import { toWebUrl } from '../markdown.js';
import { Markdown } from '../markdown-view.js';
import { Fold, Item, Part } from '../parts.js';

/** Links, description, annotations, manifests and properties of a bundle. */
export function About({ bundle }: { bundle: BundleDetails }) {
  const { facts, links, keywords, description, annotations, properties, manifests } = bundle;
  return (
    <>
      {facts.length + links.length + keywords.length > 0 && (
        <Part title="About">
          <dl>
            {facts.map(({ name, value }) => (
              <Item key={name} term={name}>
                <WebLink url={value}>{value}</WebLink>
              </Item>
            ))}
            {links.length > 0 && (
              <Item term="Links">
                <ul class="names">
                  {links.map(({ name, url }, index) => (
                    <li key={index}>
                      <WebLink url={url}>{name || url}</WebLink>
                    </li>
                  ))}
                </ul>
              </Item>
            )}
            {keywords.length > 0 && <Item term="Keywords">{keywords.join(', ')}</Item>}
          </dl>
        </Part>
      )}
      {description !== '' && (
        <Fold title="Description">
          <Markdown text={description} />
        </Fold>
      )}
      {annotations.length > 0 && (
        <Fold title="Annotations" amount={annotations.length}>
          <dl class="wide">
            {annotations.map(({ name, value }) => (
              <Item key={name} term={name}>
                {value}
              </Item>
            ))}
          </dl>
        </Fold>
      )}
      <Counts title="Manifests in the catalog" counts={manifests.map(({ kind, count: n }) => [kind, n])} />
      <Counts title="Properties" counts={properties.map(({ type, count: n }) => [type, n])} />
    </>
  );
}

function Counts({ title, counts }: { title: string; counts: [string, number][] }) {
  if (counts.length === 0) return null;
  return (
    <Fold title={title} amount={counts.reduce((sum, [, amount]) => sum + amount, 0)}>
      <ul class="apis">
        {counts.map(([name, amount]) => (
          <li key={name}>
            {name} <small>{amount}</small>
          </li>
        ))}
      </ul>
    </Fold>
  );
}

/** Link for an http or https URL; otherwise plain text. */
function WebLink({ url, children }: { url: string; children: ComponentChildren }) {
  const address = toWebUrl(url);
  if (address === undefined) return <>{children}</>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { type MarkdownNode, parseMarkdown } from './markdown.js';

/** Renders the Markdown of a description. */
export function Markdown({ text }: { text: string }) {
  const nodes = useMemo(() => parseMarkdown(text), [text]);
  return <div class="markdown">{nodes.map(showNode)}</div>;
}

function showNode(node: MarkdownNode, key: number): JSX.Element | string {
  if (typeof node === 'string') return node;
  const { tag: Tag, content, url } = node;
  const children = content.map(showNode);
  if (Tag !== 'a') {
    return (
      <Tag key={key} {...(Tag === 'pre' && { tabIndex: 0 })}>
        {children}
      </Tag>
    );
  }
  return (
    <a key={key} href={url ?? ''} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

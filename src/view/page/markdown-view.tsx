import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { type Block, type Inline, parseMarkdown } from './markdown.js';

/** Renders the Markdown of a description, with headings below those of the page. */
export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return <div class="markdown">{blocks.map(showBlock)}</div>;
}

function showBlock(block: Block, key: number): JSX.Element {
  switch (block.kind) {
    case 'heading': {
      const Heading = block.level <= 1 ? 'h4' : block.level === 2 ? 'h5' : 'h6';
      return <Heading key={key}>{block.content.map(showInline)}</Heading>;
    }
    case 'paragraph':
      return <p key={key}>{block.content.map(showInline)}</p>;
    case 'list': {
      const List = block.isOrdered ? 'ol' : 'ul';
      return (
        <List key={key}>
          {block.items.map((item, index) => (
            <li key={index}>{item.map(showInline)}</li>
          ))}
        </List>
      );
    }
    case 'code':
      return (
        <pre key={key} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case 'rule':
      return <hr key={key} />;
  }
}

function showInline(piece: Inline, key: number): JSX.Element | string {
  if (typeof piece === 'string') return piece;
  switch (piece.kind) {
    case 'code':
      return <code key={key}>{piece.text}</code>;
    case 'strong':
      return <strong key={key}>{piece.content.map(showInline)}</strong>;
    case 'emphasis':
      return <em key={key}>{piece.content.map(showInline)}</em>;
    case 'link':
      return (
        <a key={key} href={piece.url} target="_blank" rel="noopener noreferrer">
          {piece.content.map(showInline)}
        </a>
      );
  }
}

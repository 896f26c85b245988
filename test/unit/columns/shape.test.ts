import { expect, it } from 'vitest';
import { shapeOf } from '../../../src/cells/columns/column-scan.ts';

const shape = (text: string) => {
  const bytes = new TextEncoder().encode(`x${text}x`);
  return shapeOf(bytes, 1, bytes.length - 1);
};

it('the shape of a cell shows its form and no content', () => {
  expect(shape('2026-aB')).toBe('9999-aa');
  expect(shape('홍길동 010-1234')).toBe('aaa 999-9999');
  expect(shape('e\u0301٣Ⅷ')).toBe('aa99');
  expect(shape('a\n\u0000b')).toBe('a··a');
  expect(shape('x'.repeat(100))).toBe('a'.repeat(32));
  expect(shape('😀'.repeat(40))).toBe('😀'.repeat(32));
});

/**
 * A number with commas: `12,345`. Not by `toLocaleString`, because its first call in a process takes 30 ms, and messages of the
 * library are made when it is loaded.
 */
export function countText(count: number): string {
  const [whole = '', fraction] = String(count).split('.')
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

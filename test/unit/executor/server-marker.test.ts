import { expect, test } from 'vitest'
import { ServerMarker } from '../../../src/executor/server-marker.ts'

const LINE = 'INITIALIZED SERVER 40123\n'

/** The result for pieces of output: the port, and the output after the marker. */
function foundIn(pieces: readonly string[]): unknown {
  const marker = new ServerMarker()
  let found: ReturnType<ServerMarker['push']>
  let output = ''
  for (const piece of pieces) {
    if (found !== undefined) output += piece
    else found = marker.push(piece)
  }
  return found && { port: found.port, output: found.rest + output }
}

test('CA-07 finds the marker however it is cut, and returns the output after it', () => {
  const text = `${LINE}hello\n`
  const cuts = Array.from({ length: text.length + 1 }, (_, at) => at)
  for (const first of cuts) {
    for (const second of cuts.slice(first)) {
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)]
      expect(foundIn(pieces)).toEqual({ port: 40_123, output: 'hello\n' })
    }
  }
})

test('finds nothing before the end of the line', () => {
  const marker = new ServerMarker()
  for (const character of LINE.slice(0, -1)) expect(marker.push(character)).toBeUndefined()
  expect(marker.push('\n')).toEqual({ port: 40_123, rest: '' })
})

test.each([
  ['x'],
  ['INITIALIZED X'],
  ['\n'],
  ['INITIALIZED SERVER \n'],
  ['INITIALIZED SERVER 0\n'],
  ['INITIALIZED SERVER 012\n'],
  ['INITIALIZED SERVER 65536\n'],
  ['INITIALIZED SERVER 1 \n'],
  ['INITIALIZED SERVER -1\n'],
  ['INITIALIZED SERVER 123456'],
])('refuses %j', (text) => {
  expect(new ServerMarker().push(text)).toBeNull()
})

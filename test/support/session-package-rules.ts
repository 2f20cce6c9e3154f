import { expect, test } from 'vitest'
import type { Sandglass } from '../../src/index.ts'

const TABLE = 'application/vnd.sandglass.table+json'
const PNG = Buffer.from('\x89PNG\r\n\x1A\n', 'latin1')

/** What cells show of matplotlib and pandas. @param sandglass gives one with these packages. */
export function describeShownPackages(sandglass: () => Sandglass): void {
  test('cells show a chart as a picture and a table as a table, also after a rollback, and variables have types and shapes', async () => {
    await using session = await sandglass().session()
    const imported = await session.run(
      'import matplotlib.pyplot as plt, numpy as np, os, pandas as pd\ndf = pd.DataFrame({"n": [1, 2]})\na = np.zeros((2, 1))',
    )
    expect(imported).toMatchObject({ error: null, stderr: '', warnings: [], displays: [] })
    const showAll = async (): Promise<void> => {
      const chart = await session.run('plt.plot([1, 4, 9]); plt.title("Squares"); plt.show()')
      expect(chart).toMatchObject({
        error: null,
        stderr: '',
        warnings: [],
        displays: [{ kind: 'display', leftOut: [] }],
      })
      const picture = Buffer.from(chart.displays[0]?.data['image/png'] ?? '', 'base64')
      expect(picture.subarray(0, PNG.length)).toEqual(PNG)
      const table = await session.run('df')
      expect(table).toMatchObject({
        error: null,
        stderr: '',
        warnings: [],
        displays: [{ kind: 'result', leftOut: [] }],
      })
      const data = table.displays[0]?.data ?? {}
      expect(Object.keys(data).toSorted()).toEqual([TABLE, 'text/html', 'text/plain'])
      expect(JSON.parse(data[TABLE] ?? '')).toMatchObject({
        columns: [{ name: 'n', type: 'int64' }],
        rows: [[1], [2]],
        row_count: 2,
      })
      expect(data['text/html']).toMatch(/<th>n<\/th>[^]*<td>2<\/td>/)
      const variables = await session.variables()
      expect(variables.filter(({ name }) => name === 'df' || name === 'a')).toEqual([
        { name: 'df', type: 'pandas.DataFrame', shape: [2, 1], bytes: expect.any(Number) as number },
        { name: 'a', type: 'numpy.ndarray', shape: [2, 1], bytes: 16 },
      ])
    }
    await showAll()
    expect(await session.run('df = df.T; a = None; os._exit(1)')).toMatchObject({ state: 'rolled-back', missing: [] })
    await showAll()
  }, 60_000)
}

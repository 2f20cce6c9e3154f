import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type DockerEngineOptions, dockerEngine } from '../../../../src/engines/docker/index.ts'
import type { SandglassOptions } from '../../../../src/options/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { proxyDaemon } from './daemon-proxy.ts'
import { findLeftContainers } from './own-containers.ts'
import { scopedDirectory } from '../../../support/engines/docker/scoped-directory.ts'
import { TestImages } from './test-images.ts'

const { skip, image } = await requireDockerEngine()

/** Installs a module at pip's location. */
const INSTALL = `directory=$(python3 -c 'import os, site; print(next(filter(os.path.isdir, site.getsitepackages())))')
echo 'VALUE = "of the image"' > "$directory/sg_installed.py"
echo 'VALUE = "of the image"' > "$directory/sg_both.py"
echo 'import sys; sys.sg_pth = True' > "$directory/sg_installed.pth"
`

describe.skipIf(skip)('the Python of an image', () => {
  using images = new TestImages()
  const place = scopedDirectory()
  afterAll(() => {
    images[Symbol.dispose]()
    place[Symbol.dispose]()
  })
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  const resultOf = async (
    script: string,
    docker: DockerEngineOptions,
    options: SandglassOptions = {},
  ): Promise<unknown> => {
    await using sandglass = await createSandglass({ engine: dockerEngine(docker), poolSize: 1, ...options })
    const { finalData, error } = await sandglass.run(script)
    return error ?? finalData
  }

  test('provides its installed packages after `packages`, and runs none of their start-up code', async () => {
    const packages = join(place.path, 'packages')
    mkdirSync(packages)
    writeFileSync(join(packages, 'sg_both.py'), 'VALUE = "of packages"\n')
    const script = `import sys, sg_both, sg_installed
emit_result([sg_installed.VALUE, sg_both.VALUE, hasattr(sys, 'sg_pth'), 'site' in sys.modules])`
    expect(await resultOf(script, { image: images.after(image, INSTALL) }, { packages })).toEqual([
      'of the image',
      'of packages',
      false,
      true,
    ])
  })

  test('is the first one on the PATH of the image, also in a virtual environment', async () => {
    const venv = images.after(
      image,
      `home=$(dirname "$(command -v python3)")
version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p /opt/venv/bin "/opt/venv/lib/$version/site-packages"
ln -s "$home/python3" /opt/venv/bin/python3
echo "home = $home" > /opt/venv/pyvenv.cfg
echo 'include-system-site-packages = false' >> /opt/venv/pyvenv.cfg
echo 'VALUE = "of the environment"' > "/opt/venv/lib/$version/site-packages/sg_venv.py"
${INSTALL}`,
      'ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin',
    )
    const script = `import importlib.util, sys, sg_venv
emit_result([sys.executable, sg_venv.VALUE, importlib.util.find_spec('sg_installed')])`
    expect(await resultOf(script, { image: venv })).toEqual(['/opt/venv/bin/python3', 'of the environment', null])
  })

  test('is found on the PATH of the image by another name', async () => {
    const moved = images.after(
      image,
      `mkdir /opt/moved; ln -s "$(command -v python3)" /opt/moved/python-elsewhere`,
      'ENV PATH=/opt/moved:/usr/bin:/bin',
    )
    expect(await resultOf('emit_result(1)', { image: moved, python: 'python-elsewhere' })).toBe(1)
  })

  test('works also when a resource is mounted where the image has a volume', async () => {
    const data = join(place.path, 'data')
    mkdirSync(data)
    writeFileSync(join(data, 'file.txt'), 'read me\n')
    const withVolume = images.from(image, undefined, 'VOLUME /data', 'VOLUME /more/', 'VOLUME /tmp/')
    const resources = [
      { source: data, target: '/data' },
      { source: join(data, 'file.txt'), target: '/more/file.txt' },
    ]
    const script = `import os
emit_result([open('/data/file.txt').read(), open('/more/file.txt').read(), os.access('/more', os.W_OK)])`
    const options = { image: withVolume, resources, allowHostPaths: [place.path] }
    expect(await resultOf(script, options)).toEqual(['read me\n', 'read me\n', false])
  })

  test('for another processor architecture is rejected before a container is made', async () => {
    await using proxy = await proxyDaemon()
    // A name of the same length, so that the answer stays whole.
    const other = (chunk: Buffer): string =>
      chunk.toString('latin1').replace('"x86_64"', '"armv7l"').replace('"aarch64"', '"ppc64le"')
    proxy.treat = (request) =>
      request === 'GET /info'
        ? { answer: (chunk, client) => void client.write(Buffer.from(other(chunk), 'latin1')) }
        : undefined
    const engine = dockerEngine({ image, host: proxy.host })
    const { reasons } = await engine.report()
    expect(reasons).toMatchObject([
      {
        code: 'architecture_unsupported',
        message: expect.stringMatching(
          /^the image .* is made for (amd64|arm64), and the Docker daemon runs on (arm|ppc64le): docker pull/,
        ) as string,
      },
    ])
    expect(proxy.requests).not.toContain('POST /containers/create')
    await engine.close()
  })
})

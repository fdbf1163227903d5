// The documentation as a site: tests/site/run builds it. The menu is made from the lists in the directories' README files.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const docs = fileURLToPath(new URL('..', import.meta.url))

/** The links of a README's list, in its order, each with its title. */
function pages(directory) {
  const text = readFileSync(`${docs}/${directory}/README.md`, 'utf8')
  const links = text.matchAll(/^- \[([^\]]+)\]\(([^)#]+)\.md[^)]*\)(.*)$/gm)
  return [...links].map(([, title, path, behind]) => ({
    text: (/^\d+$/.test(title) ? title + behind : title).replaceAll('`', ''),
    link: new URL(path, `file:///${directory}/`).pathname,
  }))
}

const group = (text, directory) => ({
  text,
  link: `/${directory}/`,
  collapsed: directory !== 'guide',
  items: pages(directory),
})

export default {
  title: 'eastwest',
  description: 'Qualify a cluster\'s network',
  base: process.env.SITE_BASE ?? '/',
  cleanUrls: true,
  // What looks like an element is text.
  markdown: { html: false },
  rewrites: {
    'README.md': 'index.md',
    ':directory/README.md': ':directory/index.md',
  },
  // Files of the project that are no pages.
  ignoreDeadLinks: [/bench\/corpus/],
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Guide', link: '/guide/' },
      { text: 'Concepts', link: '/concepts/' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Benchmarks', link: '/benchmarks' },
    ],
    sidebar: [
      group('Guide', 'guide'),
      group('Concepts', 'concepts'),
      group('Reference', 'reference'),
      group('Compared with other tools', 'comparisons'),
      group('Decisions', 'decisions'),
      { text: 'Benchmarks', link: '/benchmarks' },
    ],
  },
}

// Wide tables scroll inside a box that the theme puts around them later; a keyboard must be able to reach it.
const reach = () => document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach(box => { box.tabIndex = 0 })
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true })
reach()

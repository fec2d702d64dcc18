"""Flows of the console in a real browser: by mouse, by keyboard alone, live, behind a path prefix."""

import re
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from playwright.async_api import Browser, Page, expect

from folklore.model import Draft
from tests.browser.conftest import Site, browsing
from tests.browser.prefix import prefixed
from tests.waiting import STUCK

pytestmark = pytest.mark.browser


async def kept(site: Site, text: str, namespace: str = "harbour") -> str:
    (id_,) = await site.team.keep(Draft(text), namespace=namespace)
    return str(id_)


async def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus, as a person without a mouse does."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        if await page.evaluate(
            "(selector) => document.activeElement?.matches(selector)", selector
        ):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


async def test_signing_in_and_out_by_keyboard(chromium: Browser, site: Site) -> None:
    async with browsing(chromium, site) as (page, watch):
        watch.expected.append("403")
        await page.goto("/timeline?project=harbour")
        await tab_to(page, "#token")
        await page.keyboard.type("fk_wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("not a Folklore token")
        await tab_to(page, "#token")
        await page.keyboard.type(site.tokens["ann"])
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/timeline?project=harbour")
        await tab_to(page, ".who button")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/sign-in")
        await page.goto("/")
        assert "/sign-in" in page.url


async def test_searching_as_a_person_types(chromium: Browser, site: Site) -> None:
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto("/search")
        await page.keyboard.press("/")
        await page.keyboard.type("pool of connections", delay=20)
        await expect(page.locator("#answer .result").first).to_contain_text("pool")
        await page.wait_for_url(re.compile(r"q=pool\+of\+connections"))
        assert await page.input_value("#q") == "pool of connections"
        assert await page.evaluate("document.activeElement.id") == "q"
        await page.reload()
        await expect(page.locator("#answer .result").first).to_contain_text("pool")


async def test_results_by_keyboard(chromium: Browser, site: Site) -> None:
    id_ = await kept(site, "The sluice of the mill is opened by a blue key.")
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto("/search?q=sluice+of+the+mill&project=harbour")
        await page.keyboard.press("j")
        await page.keyboard.press("e")
        await page.wait_for_url(f"**/memories/{id_}/edit")
        await page.go_back()
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/memories/{id_}")
        await page.keyboard.press("f")
        await page.wait_for_url(f"**/memories/{id_}/forget")
        await tab_to(page, "main form button")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/memories/{id_}?notice=forgotten")
        await page.click("button:has-text('Restore')")
        await page.wait_for_url(f"**/memories/{id_}?notice=undone")


async def test_editing_by_keyboard_and_undo(chromium: Browser, site: Site) -> None:
    id_ = await kept(site, "The bell of the chapel rings at noon.")
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto(f"/memories/{id_}/edit")
        await tab_to(page, "#content")
        await page.keyboard.press("Control+A")
        await page.keyboard.type("The bell of the chapel rings at one.")
        await tab_to(page, "form.card button")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**notice=saved")
        await expect(page.locator(".difference ins").first).to_contain_text("one")
        await page.click("button:has-text('Undo the last change')")
        await page.wait_for_url("**notice=undone")
        await expect(page.locator(".memory-text")).to_have_text(
            "The bell of the chapel rings at noon."
        )


async def test_reviewing_by_keys_where_an_item_stands(
    chromium: Browser, site: Site
) -> None:
    await kept(
        site, "The gate of the depot opens at six.\nIts key is blue.", "repo:acme/shop"
    )
    await kept(
        site,
        "The gate of the depot opens at seven.\nIts key is blue.",
        "repo:acme/shop",
    )
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto("/review?project=repo:acme/shop&reason=similar")
        item = page.locator("[data-entry]").first
        heights = await item.locator(".difference, .difference > div").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().height)"
        )
        assert heights[0] == sum(heights[1:])  # no blank lines
        await page.keyboard.press("u")
        await page.keyboard.press("1")
        await expect(item.locator(".difference")).to_be_visible()
        await page.keyboard.press("j")
        await page.keyboard.press("1")
        await expect(page.locator("#state")).to_have_text("Forget the older: done.")
        await page.keyboard.press("u")
        await expect(page.locator("#state")).to_have_text("Undone.")
        await expect(item.locator(".difference")).to_be_visible()


async def test_keys_can_be_turned_off_and_undo_nothing_by_themselves(
    chromium: Browser, site: Site
) -> None:
    id_ = await kept(site, "The slip has two rails.")
    await site.team.owner.update(UUID(id_), content="The slip has three rails.")
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto(f"/memories/{id_}")
        await page.keyboard.press("u")
        await expect(page.locator("#undo")).to_be_focused()
        await page.click("button:has-text('Turn single-letter keys off')")
        await page.goto(f"/memories/{id_}")
        await page.keyboard.press("e")
        await page.keyboard.press("u")
        await expect(page.locator("#undo")).not_to_be_focused()
        await page.click("button:has-text('Turn single-letter keys on')")
        await page.keyboard.press("e")
        await page.wait_for_url("**/edit")


async def test_weights_change_the_order_at_once(chromium: Browser, site: Site) -> None:
    async with browsing(chromium, site, "root") as (page, _):
        await page.goto("/why?q=pool+of+connections&project=harbour")
        await expect(page.get_by_role("heading", name="Dense branch")).to_be_visible()
        await page.click("summary:has-text('Weights')")
        await page.focus("#dense")
        await page.keyboard.press("Home")
        await expect(page.get_by_role("heading", name="Dense branch")).to_have_count(0)
        await page.wait_for_url(re.compile("dense=0"))
        await page.reload()
        await expect(page.locator("#explained pre")).to_contain_text('{"dense": 0.0}')


async def test_the_live_feed_shows_what_happens_and_can_be_paused(
    chromium: Browser, site: Site
) -> None:
    async with browsing(chromium, site, "ann") as (page, _):
        # Recalls are recorded seconds after their answers: those of other tests would be counted here.
        await page.goto("/timeline?project=harbour&kind=stored")
        await expect(page.locator("#live-state")).not_to_have_text(
            "Connecting …", timeout=STUCK * 1000
        )
        await kept(site, "A seal sleeps on the slipway.")
        await kept(site, "Nothing of Bob's is shown to Ann.", "bob-private")
        await expect(page.locator("#live-events")).to_contain_text(
            "A seal sleeps", timeout=STUCK * 1000
        )
        await page.click("#pause")
        await kept(site, "A second seal sleeps there.")
        await expect(page.locator("#live-state")).to_contain_text(
            "1 new event", timeout=STUCK * 1000
        )
        assert "second seal" not in await page.inner_text("#live-events")
        await page.click("#pause")
        await expect(page.locator("#live-events")).to_contain_text(
            "second seal", timeout=STUCK * 1000
        )
        assert "Bob" not in await page.inner_text("#live-events")


async def test_two_people_see_what_is_theirs(chromium: Browser, site: Site) -> None:
    for person, sees, misses in (
        ("bob", "bob-private", "harbour"),
        ("rita", "harbour", "bob-private"),
    ):
        async with browsing(chromium, site, person) as (page, _):
            for path in (
                "/",
                "/search",
                "/timeline",
                "/injected",
                "/review",
                "/team",
                "/operate",
            ):
                await page.goto(path)
                shown = await page.inner_text("main")
                assert misses not in shown, (person, path)
            await page.goto("/")
            assert sees in await page.inner_text("main")


async def test_everything_works_behind_a_path_prefix(
    chromium: Browser, site: Site
) -> None:
    async with (
        prefixed(site.team.server.port) as url,
        browsing(chromium, site, "ann", url=url) as (page, watch),
    ):
        for path in (
            "/",
            "/search?q=pool",
            "/why?q=pool",
            "/timeline",
            "/injected",
            "/review",
            "/team",
            "/operate",
        ):
            await page.goto(f"{url}{path}")
            assert await page.inner_text("h1")
        await page.goto(f"{url}/search?q=pool+of+connections")
        await page.click("#answer .result a[data-open]")
        await page.wait_for_url(f"{url}/memories/**")
        await page.click("a:has-text('Edit')")
        await page.click("form.card button:has-text('Save')")
        await page.wait_for_url("**notice=nothing")
        cookies = await page.context.cookies()
        await page.click("button:has-text('Sign out')")
        await page.wait_for_url(f"{url}/sign-in")

    assert {cookie["path"] for cookie in cookies} == {
        "/folklore",
        "/folklore/",
    }  # of the session, of the time zone
    assert all(
        urlsplit(address).path.startswith("/folklore/") for address in watch.requests
    )


async def test_a_project_is_made_filled_by_an_import_and_deleted(
    chromium: Browser, site: Site, tmp_path: Path
) -> None:
    async with browsing(chromium, site, "root") as (page, _):
        await page.goto("/projects")
        await tab_to(page, "#name")
        await page.keyboard.type("slipway")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**notice=created**")
        async with page.expect_download() as download:
            await page.goto("/project?project=repo:acme/shop")
            await page.click("a:has-text('Export as JSON Lines')")
        await (await download.value).save_as(tmp_path / "shop.jsonl")
        await page.goto("/projects/import")
        await page.set_input_files("#file", tmp_path / "shop.jsonl")
        await page.fill("#project", "slipway")
        await page.uncheck("input[name=dry_run]")
        await page.click("button:has-text('Import')")
        await expect(page.get_by_role("status")).to_contain_text("stored")
        await page.goto("/project?project=slipway")
        await page.click("a:has-text('Delete this project')")
        await tab_to(page, "button.danger")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**notice=deleted**")
        await page.click("button[aria-label='Restore slipway']")
        await page.wait_for_url("**notice=restored**")


async def test_a_session_that_is_over_leads_back_after_signing_in(
    chromium: Browser, site: Site
) -> None:
    async with browsing(chromium, site, "ann") as (page, _):
        await page.goto("/projects?q=harb")
        await page.context.clear_cookies()
        await page.fill("#q", "harbour")
        await page.keyboard.press("Enter")
        await page.fill("#token", site.tokens["ann"])
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/projects?q=harbour")
        await expect(page.locator("tbody th")).to_have_text("harbour")

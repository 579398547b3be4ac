"""Reviews: the first answer counts, and no later one changes anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Open, Rejected, ReviewTable

_ANSWERS = st.tuples(st.sampled_from(["accept", "reject", "close"]), st.text())


def _answer(review: DiffReview, answer: tuple[str, str]) -> DiffReview:
    match answer:
        case ("accept", text):
            return review.accept(text)
        case ("close", text):
            return review.close(text)
        case _:
            return review.reject()


@given(st.lists(_ANSWERS, min_size=1))
def test_the_first_answer_wins_and_the_others_change_nothing(answers: list[tuple[str, str]]) -> None:
    review = DiffReview("1", "/a", "new")
    first = _answer(review, answers[0])
    assert not first.is_open
    last = first
    for answer in answers[1:]:
        last = _answer(last, answer)
    assert last is first
    assert review.is_open


def test_a_review_closed_without_a_text_ends_with_the_proposal() -> None:
    assert DiffReview("1", "/a", "new").close().state == Closed("new")
    assert DiffReview("1", "/a", "new").close("").state == Closed("")


class Reviews(RuleBasedStateMachine):
    """The table against a plain model: the open reviews by client, path and tab, and the shown ones by file."""

    reviews = Bundle("reviews")

    def __init__(self) -> None:
        super().__init__()
        self.table = ReviewTable()
        self.model: dict[tuple[str, str, str], DiffReview] = {}
        self.shown: dict[str, str] = {}
        self.count = 0

    @rule(
        target=reviews,
        owner=st.sampled_from("ab"),
        path=st.sampled_from(["/x", "/y", "/x/"]),
        tab=st.sampled_from(["", "tab"]),
    )
    def open(self, owner: str, path: str, tab: str) -> DiffReview:
        self.count += 1
        review = DiffReview(str(self.count), path, "new", owner, tab_name=tab, target=path.rstrip("/"))
        former = self.table.open(review)
        replaced = self.model.pop((owner, path, tab), None)
        assert (former.id if former else None) == (replaced.id if replaced else None)
        assert former is None or former.state == Closed("new")
        if replaced is not None:
            self._forget(replaced)
        self.model[owner, path, tab] = review
        return review

    def _forget(self, review: DiffReview) -> None:
        if self.shown.get(review.target) == review.id:
            del self.shown[review.target]

    def _expected(self, review: DiffReview) -> bool:
        key = (review.owner, review.file_path, review.tab_name)
        if self.model.get(key) is review:
            del self.model[key]
            self._forget(review)
            return True
        return False

    @rule(file=st.sampled_from(["/x", "/y"]))
    def show_next(self, file: str) -> None:
        waiting = [review for review in self.model.values() if review.target == file]
        oldest = min(waiting, key=lambda review: int(review.id), default=None)
        expected = oldest if file not in self.shown else None
        following = self.table.next(file)
        assert following is expected
        if following is not None:
            self.table.show(following.id)
            self.shown[file] = following.id

    @rule(review=reviews)
    def show_out_of_turn(self, review: DiffReview) -> None:
        if self.table.get(review.id) is None:
            with pytest.raises(KeyError):
                self.table.show(review.id)
        elif review.target in self.shown:
            with pytest.raises(ValueError, match="is shown"):
                self.table.show(review.id)

    @rule(review=reviews, text=st.text(max_size=3))
    def accept(self, review: DiffReview, text: str) -> None:
        expected = self._expected(review)
        decided = self.table.accept(review.id, text)
        assert (decided.state if decided else None) == (Accepted(text) if expected else None)

    @rule(review=reviews)
    def reject(self, review: DiffReview) -> None:
        expected = self._expected(review)
        decided = self.table.reject(review.id)
        assert (decided.state if decided else None) == (Rejected() if expected else None)

    @rule(review=consumes(reviews))
    def close(self, review: DiffReview) -> None:
        expected = self._expected(review)
        closed = self.table.close(review.id, "text")
        assert (closed.state if closed else None) == (Closed("text") if expected else None)

    @invariant()
    def holds_what_is_open(self) -> None:
        assert len(self.table) == len(self.model)
        assert set(self.table.all()) == set(self.model.values())
        assert all(review.state == Open() for review in self.table.all())
        for (owner, path, tab), review in self.model.items():
            assert self.table.find(owner, path, tab) is review
            assert self.table.get(review.id) is review
            assert review in self.table.all(owner)

    @invariant()
    def shows_at_most_one_of_a_file(self) -> None:
        shown = {review.target: review.id for review in self.table.all() if self.table.is_shown(review.id)}
        assert shown == self.shown


TestReviews = pytest.mark.slow(Reviews.TestCase)

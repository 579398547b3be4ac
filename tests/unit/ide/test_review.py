"""Reviews: the first answer wins, and nothing after it changes anything."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from isthmus.ide.review import Accepted, Closed, DiffReview, Open, Rejected, ReviewTable

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
    """The table against a plain model: what is open, by client and path."""

    reviews = Bundle("reviews")

    def __init__(self) -> None:
        super().__init__()
        self.table = ReviewTable()
        self.model: dict[tuple[str, str], DiffReview] = {}
        self.count = 0

    @rule(target=reviews, owner=st.sampled_from("ab"), path=st.sampled_from(["/x", "/y", "/x/"]))
    def open(self, owner: str, path: str) -> DiffReview:
        self.count += 1
        review = DiffReview(str(self.count), path, "new", owner)
        former = self.table.open(review)
        replaced = self.model.get((owner, path))
        assert (former.id if former else None) == (replaced.id if replaced else None)
        assert former is None or former.state == Closed("new")
        self.model[owner, path] = review
        return review

    def _expected(self, review: DiffReview) -> bool:
        key = (review.owner, review.file_path)
        if self.model.get(key) is review:
            del self.model[key]
            return True
        return False

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
        for (owner, path), review in self.model.items():
            assert self.table.find(owner, path) is review
            assert self.table.get(review.id) is review
            assert review in self.table.all(owner)


TestReviews = Reviews.TestCase

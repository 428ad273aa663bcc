"""Pairs of sentences that differ in their last word, and thereby in what *it* means (lesson 12).

After the test of Levesque, Davis, Morgenstern, *The Winograd Schema Challenge* (2012). The first pair is that of the course
(Uszkoreit, 2017); the others were written for it, all of one kind, before any of them was shown to a model. Some can be argued
about: a robot may be heavy. They count only together.
"""

from typing import NamedTuple


class Pair(NamedTuple):
    """``start`` + *because it was too* + a last word; with ``words[0]`` *it* is ``nouns[0]``, with ``words[1]`` ``nouns[1]``."""

    start: str
    nouns: tuple[str, str]
    words: tuple[str, str]

    def sentences(self) -> tuple[str, str]:
        """Both sentences, the first noun's first."""
        first, second = (f"{self.start} because it was too {word}." for word in self.words)
        return first, second


PAIRS = [
    Pair("The animal didn't cross the street", ("animal", "street"), ("tired", "wide")),
    Pair("The truck didn't cross the bridge", ("truck", "bridge"), ("heavy", "weak")),
    Pair("The book didn't fit on the shelf", ("book", "shelf"), ("tall", "low")),
    Pair("The key didn't turn in the lock", ("key", "lock"), ("thick", "narrow")),
    Pair("The dog didn't catch the rabbit", ("dog", "rabbit"), ("slow", "fast")),
    Pair("The bird didn't open the nut", ("bird", "nut"), ("weak", "hard")),
    Pair("The ship didn't enter the river", ("ship", "river"), ("large", "shallow")),
    Pair("The knife didn't cut the bread", ("knife", "bread"), ("dull", "hard")),
    Pair("The rope didn't hold the boat", ("rope", "boat"), ("thin", "heavy")),
    Pair("The horse didn't jump the fence", ("horse", "fence"), ("tired", "high")),
    Pair("The robot didn't lift the box", ("robot", "box"), ("weak", "heavy")),
    Pair("The lamp didn't light the room", ("lamp", "room"), ("dim", "large")),
    Pair("The pump didn't empty the lake", ("pump", "lake"), ("weak", "deep")),
    Pair("The plane didn't land on the road", ("plane", "road"), ("large", "narrow")),
    Pair("The army didn't take the castle", ("army", "castle"), ("weak", "strong")),
    Pair("The letter didn't fit in the envelope", ("letter", "envelope"), ("long", "small")),
    Pair("The wolf didn't catch the deer", ("wolf", "deer"), ("slow", "quick")),
    Pair("The coat didn't fit in the bag", ("coat", "bag"), ("thick", "small")),
    Pair("The telescope didn't show the star", ("telescope", "star"), ("cheap", "faint")),
    Pair("The ladder didn't reach the roof", ("ladder", "roof"), ("short", "high")),
    Pair("The car didn't climb the hill", ("car", "hill"), ("old", "steep")),
    Pair("The tent didn't survive the storm", ("tent", "storm"), ("thin", "strong")),
    Pair("The drug didn't stop the pain", ("drug", "pain"), ("mild", "severe")),
    Pair("The shovel didn't break the ice", ("shovel", "ice"), ("light", "thick")),
    Pair("The train didn't enter the tunnel", ("train", "tunnel"), ("tall", "low")),
    Pair("The crane didn't lift the statue", ("crane", "statue"), ("small", "heavy")),
    Pair("The camel didn't cross the desert", ("camel", "desert"), ("sick", "vast")),
    Pair("The fire didn't melt the metal", ("fire", "metal"), ("small", "hard")),
    Pair("The bear didn't enter the cave", ("bear", "cave"), ("big", "dark")),
    Pair("The phone didn't fit in the pocket", ("phone", "pocket"), ("big", "small")),
    Pair("The piano didn't pass the door", ("piano", "door"), ("wide", "narrow")),
    Pair("The hammer didn't crack the stone", ("hammer", "stone"), ("light", "hard")),
]

# Sentences of many shapes, to count on what is no habit of one kind of sentence.
SENTENCES = [
    "The old man put the letter on the table and went to bed.",
    "When the rain stopped, the children ran into the garden.",
    "She bought bread, milk and three apples at the market near the station.",
    "I have never seen a bird that sings so loudly before sunrise.",
    "The teacher asked a question, but nobody in the room knew the answer.",
    "Two ships left the harbour at noon and came back after dark.",
    "If you heat water long enough, it begins to boil.",
    "My sister works in a hospital where her friends also work.",
    "Before the film began, the lights went out and everyone was quiet.",
    "The company that built the bridge has closed its office in the north.",
    "He opened the window because the kitchen was full of smoke.",
    "Nobody told us why the train was late, so we waited for an hour.",
    "A small red car stood in front of the house all week.",
    "They could not agree on a name for the dog, and in the end it had two.",
    "Most of the books on this shelf were written before I was born.",
    "The soup was too hot to eat, so we talked until it was cool.",
]

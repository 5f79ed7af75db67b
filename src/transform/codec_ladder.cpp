#include "transform/codec_ladder.h"

#include <algorithm>
#include <unordered_set>

namespace thimble {
namespace {

// Bytes that a code leaves out of a number, scales apart.
double left_out(Codec codec, DType dtype) {
  const auto whole = static_cast<double>(size_of(dtype));
  switch (codec) {
    case Codec::fp16:
    case Codec::bf16:
      return whole - 2;
    case Codec::int8:
      return whole - 1;
    case Codec::int4:
      return whole - 0.5;
    case Codec::int2:
      return whole - 0.25;
    default:
      return 0;
  }
}

class Ladder {
 public:
  Ladder(const Graph& graph, std::span<const Encodable> encodable,
         const std::vector<std::vector<ValueId>>& groups)
      : graph_(graph), groups_(groups) {
    for (const Encodable& value : encodable) {
      order_.push_back(value.value);
      if (value.signs) signs_.insert(value.value.at());
    }
    add({});
  }

  // Masks alone.
  void add_masks() { add(std::vector<Codec>(groups_.size(), Codec::mask)); }

  // The first groups of each of `steps` growing numbers of them; the others are kept whole.
  void add_prefixes(Codec codec, size_t steps) {
    const size_t count = std::min(steps, groups_.size());
    for (size_t i = 1; i <= count; ++i) {
      std::vector<Codec> codecs(groups_.size(), Codec::mask);
      std::fill_n(codecs.begin(), groups_.size() * i / count, codec);
      add(codecs);
    }
  }

  // All but one group, or that one alone.
  void add_single_groups(Codec codec) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<Codec> codecs(groups_.size(), Codec::mask);
      codecs[g] = codec;
      add(codecs);
      std::fill(codecs.begin(), codecs.end(), codec);
      codecs[g] = Codec::mask;
      add(codecs);
    }
  }

  size_t size() const { return encodings_.size(); }

  std::vector<Encoding> sorted() {
    std::stable_sort(encodings_.begin(), encodings_.end(),
                     [](const Encoding& a, const Encoding& b) { return a.harm < b.harm; });
    return std::move(encodings_);
  }

 private:
  void add(const std::vector<Codec>& by_group) {
    std::vector<Codec> by_value(graph_.values.size(), Codec::none);
    for (size_t g = 0; g < by_group.size(); ++g) {
      for (const ValueId value : groups_[g]) by_value[value.at()] = by_group[g];
    }
    Encoding encoding;
    for (const ValueId value : order_) {
      const bool signs = signs_.contains(value.at());
      const Codec wanted = by_value[value.at()];
      const Codec codec = wanted != Codec::none && signs ? Codec::mask : wanted;
      const double loss = left_out(codec, graph_[value].type.dtype);
      if (codec == Codec::none || (!signs && loss <= 0)) continue;
      encoding.values.push_back({graph_[value].name, codec});
      encoding.harm += loss * static_cast<double>(graph_[value].type.elements());
    }
    const bool known =
        std::any_of(encodings_.begin(), encodings_.end(),
                    [&](const Encoding& other) { return other.values == encoding.values; });
    if (!known) encodings_.push_back(std::move(encoding));
  }

  const Graph& graph_;
  const std::vector<std::vector<ValueId>>& groups_;
  std::vector<ValueId> order_;
  std::unordered_set<size_t> signs_;
  std::vector<Encoding> encodings_;
};

}  // namespace

std::vector<Codec> rungs_of(const CodecSpec& spec) {
  if (!spec.automatic) return {spec.codec};
  // One of the 16-bit ones: fp16 rounds less, unless it is bf16 that was asked for.
  const Codec half = spec.codec == Codec::bf16 ? Codec::bf16 : Codec::fp16;
  std::vector<Codec> rungs;
  for (const Codec codec : {Codec::mask, half, Codec::int8, Codec::int4, Codec::int2}) {
    if (codec <= spec.codec) rungs.push_back(codec);
  }
  return rungs;
}

std::vector<Encoding> encodings_to_try(const Graph& graph, const CodecSpec& spec, Tier allowed,
                                       std::span<const Encodable> encodable,
                                       const std::vector<std::vector<ValueId>>& groups,
                                       size_t most) {
  Ladder ladder(graph, encodable, groups);
  std::vector<Codec> rungs = rungs_of(spec);
  if (allowed < Tier::approximate) rungs = {Codec::mask};
  ladder.add_masks();
  if (rungs.size() == 1) return ladder.sorted();
  const size_t steps =
      std::max<size_t>(1, (most - std::min(most, ladder.size())) / (rungs.size() - 1));
  for (size_t r = 1; r < rungs.size(); ++r) ladder.add_prefixes(rungs[r], steps);
  for (size_t r = 1; r < rungs.size(); ++r) {
    if (ladder.size() + 2 * groups.size() <= most) ladder.add_single_groups(rungs[r]);
  }
  return ladder.sorted();
}

}  // namespace thimble

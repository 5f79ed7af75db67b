// Network files that someone damaged or made up: a sentence for each, never a crash.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "../file_support.h"
#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "import/net.h"
#include "model/model.h"

namespace thimble {
namespace {

const std::string kNets = THIMBLE_TEST_NETS;

// One thing in it is another: a number, a name, a type, a place, or it is gone or there twice.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  nlohmann::json operator()(nlohmann::json file) {
    const int changes = 1 + pick(3);
    for (int i = 0; i < changes; ++i) change(somewhere(file));
    return file;
  }

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  nlohmann::json& somewhere(nlohmann::json& from) {
    nlohmann::json* at = &from;
    while (at->is_structured() && !at->empty() && (at == &from || pick(5) > 0)) {
      at = &*std::next(at->begin(), pick(static_cast<int>(at->size())));
    }
    return *at;
  }

  void change(nlohmann::json& at) {
    using nlohmann::json;
    const std::vector<json> odd = {0,
                                   -1,
                                   7,
                                   1e300,
                                   int64_t{1} << 62,
                                   "rows",
                                   "rows*99999999999",
                                   "%1",
                                   nullptr,
                                   true,
                                   "",
                                   json::array(),
                                   json::object(),
                                   -0.5,
                                   json::array({1, 2, 3, 4, 5, 6, 7, 8}),
                                   std::string(5000, 'x')};
    if (at.is_array() && !at.empty() && pick(2) == 0) {
      if (pick(2) == 0) {
        at.erase(at.begin() + pick(static_cast<int>(at.size())));
      } else {
        at.push_back(at[static_cast<size_t>(pick(static_cast<int>(at.size())))]);
      }
    } else if (at.is_object() && !at.empty() && pick(2) == 0) {
      at.erase(std::next(at.begin(), pick(static_cast<int>(at.size()))).key());
    } else if (at.is_number_integer() && pick(2) == 0) {
      at = at.get<int64_t>() + pick(5) - 2;
    } else {
      at = odd[static_cast<size_t>(pick(static_cast<int>(odd.size())))];
    }
  }

  std::mt19937 random_;
};

// The refusal to build it; empty: it was built.
std::string said_of(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.json";
  write_file(path, text);
  try {
    build_model({.name = path});
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(MutatedNets, AreBuiltOrRefusedWithASentence) {
  int refused = 0;
  for (const char* net : {"pictures", "words", "series"}) {
    const nlohmann::json file = read_json(kNets + "/" + net + ".json", "a net");
    for (uint32_t seed = 0; seed < 100; ++seed) {
      const std::string said = said_of(json_text(Mutator(seed)(file)));
      refused += said.empty() ? 0 : 1;
      EXPECT_EQ(said.find("a bug in thimble"), std::string::npos) << net << " " << seed;
    }
  }
  EXPECT_GT(refused, 150);  // of 300; some changes change nothing that matters
}

TEST(MutatedNets, BytesThatAreNoFileAreRefused) {
  const std::string text = read_text(kNets + "/words.json", "a net", Bytes(1 << 20));
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    said_of(damaged);  // throws nothing but UserError
  }
}

// Everything that is wrong, at once, with where it stands.
TEST(MutatedNets, AllThatCannotBeDoneIsSaidAtOnce) {
  nlohmann::json file = read_json(kNets + "/words.json", "a net");
  int changed = 0;
  for (nlohmann::json& node : file["nodes"]) {
    if (node["op"] == "gelu" || node["op"] == "layer_norm") {
      node["op"] = "fancy_" + node["op"].get<std::string>();
      node["at"] = fmt::format("net.py:{}", 10 + changed++);
    }
  }
  ASSERT_EQ(changed, 2);
  const std::string said = said_of(json_text(file));
  EXPECT_NE(said.find("fancy_layer_norm: there is no such op here (net.py:10)"), std::string::npos)
      << said;
  EXPECT_NE(said.find("fancy_gelu: there is no such op here (net.py:11)"), std::string::npos)
      << said;
}

TEST(MutatedNets, WeightsLieBesideTheFile) {
  nlohmann::json file = read_json(kNets + "/words.json", "a net");
  file["weights"] = "../../etc/passwd";
  EXPECT_NE(said_of(json_text(file)).find("not a file beside it"), std::string::npos);
}

TEST(MutatedNets, AFileOfAnotherFormatSaysSo) {
  nlohmann::json file = read_json(kNets + "/words.json", "a net");
  file["thimble_network"] = 2;
  EXPECT_NE(said_of(json_text(file)).find("format 2"), std::string::npos);
}

}  // namespace
}  // namespace thimble

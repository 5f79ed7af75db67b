#include "data/prepare/get/places.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"

namespace thimble {

std::span<const Place> all_places() {
  static const std::vector<Place> places = {
      {"cifar10",
       "60,000 photographs, 32x32 colour, 10 classes",
       "A. Krizhevsky, V. Nair, G. Hinton, 2009",
       {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", 170'052'171,
         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", Unpack::tar}},
       "thimble train recipes/wrn-28-2-cifar10.toml --data-dir {}"},
      {"mnist",
       "70,000 handwritten digits, 28x28 grey, 10 classes",
       "Y. LeCun, C. Cortes, C. Burges",
       {{"https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz", 9'912'422,
         "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
        {"https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz", 28'881,
         "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
        {"https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz", 1'648'877,
         "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
        {"https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz", 4'542,
         "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
       "thimble train lenet --data mnist --data-dir {}"},
      {"fashion_mnist",
       "70,000 pictures of clothes, 28x28 grey, 10 classes",
       "H. Xiao, K. Rasul, R. Vollgraf; MIT licence",
       {{"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
         "train-images-idx3-ubyte.gz",
         26'421'880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
        {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
         "train-labels-idx1-ubyte.gz",
         29'515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
        {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
         "t10k-images-idx3-ubyte.gz",
         4'422'102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
        {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
         "t10k-labels-idx1-ubyte.gz",
         5'148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
       "thimble train lenet --data fashion_mnist --data-dir {}"},
      {"tinyshakespeare",
       "1.1 MB of plain English",
       "public domain text, as A. Karpathy put it together",
       {{"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"
         "input.txt",
         1'115'394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}},
       "thimble data tokens {}/input.txt --by characters --out {}"},
      {"multi30k",
       "29,000 captions in German and English, with validation and test sets",
       "D. Elliott, S. Frank, K. Sima'an, L. Specia, 2016; see the data set's own page",
       {{"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.de.gz",
         637'044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6", Unpack::gzip},
        {"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.en.gz",
         568'929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f", Unpack::gzip},
        {"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/val.de.gz",
         24'681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a", Unpack::gzip},
        {"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/val.en.gz",
         21'650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28", Unpack::gzip},
        {"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
         "test_2016_flickr.de.gz",
         22'890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8", Unpack::gzip},
        {"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
         "test_2016_flickr.en.gz",
         21'077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9", Unpack::gzip}},
       "thimble data pairs --train {}/train.de {}/train.en --valid {}/val.de {}/val.en --from de "
       "--to en --tokenise --lower --merges 10000 --out {}"},
      {"tatoeba",
       "English and German sentences of Tatoeba, as ManyThings.org puts them together",
       "CC BY 2.0 FR",
       {{"https://www.manythings.org/anki/deu-eng.zip", 0, {}, Unpack::zip}},
       "thimble data pairs --train {}/deu.txt --columns 2,1 --from de --to en --tokenise --lower "
       "--merges 10000 --out {}"},
      {"iwslt14",
       "160,000 sentences of talks in German and English, with validation and test sets",
       "TED; CC BY-NC-ND 3.0",
       {{"https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz", 0, {}, Unpack::tar}},
       "thimble data pairs --train {}/de-en/train.tags.de-en.de {}/de-en/train.tags.de-en.en "
       "--from "
       "de --to en --tokenise --lower --merges 10000 --out {}"},
      {"spoken_digits",
       "the Free Spoken Digit Dataset: 3,000 recordings of single digits",
       "Z. Jackson and others; CC BY-SA 4.0",
       {{"https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz",
         0,
         {},
         Unpack::tar}},
       "thimble train recipes/spoken-digits.toml --data-dir {}"},
  };
  return places;
}

const Place& find_place(std::string_view name) {
  std::vector<std::string> names;
  for (const Place& place : all_places()) {
    if (place.name == name) return place;
    names.emplace_back(place.name);
  }
  user_error("there is no data set '{}' to get; known: {}{}", name, fmt::join(names, ", "),
             nearest_clause(name, names));
}

}  // namespace thimble
